"""Small examples of other people's results, in the forms that `labctl import` takes."""

from __future__ import annotations

SESSIONS = """,id,session_uuid,evaluation_location,evaluator_name,session_creation_timestamp,\
evaluation_notes,policyA_name,policyB_name
0,7,u-late,Lab West,ann@lab,2026-02-02 10:00:00,"UCB_POLICY=p
VALID_SESSION: yes
PREFERENCE=B
LONGFORM_FEEDBACK=second, by far",p,q
1,8,u-early,Lab East,bob@lab,2026-02-01 10:00:00,"VALID_SESSION: ok
PREFERENCE=tie",q,p
2,9,u-bad,Lab East,bob@lab,2026-02-01 11:00:00,TIMED_OUT,p,q
"""
EPISODES = """id,session_id,policy_name,command,binary_success,partial_success,duration,feedback,timestamp
1,7,p,put the cup away,0,0.25,399,A;avg_latency=0.2,2026-02-02 10:01:00
2,7,q,put the cup away,1,1.0,120,B;avg_latency=0.1,2026-02-02 10:05:00
3,7,r,put the cup away,0,0.5,399,C;avg_latency=0.1,2026-02-02 10:09:00
4,8,p,open  the drawer,0,0,399,,2026-02-01 10:09:00
5,8,q,open  the drawer,0,0.4,399,,2026-02-01 10:01:00
6,9,p,x,0,0,1,A,2026-02-01 11:01:00
7,9,q,x,0,0,1,B,2026-02-01 11:01:00
8,77,q,x,0,0,1,B,2026-02-01 11:01:00
"""

LOG = {
    "version": 1,
    "eval": {"task": "kitchen", "policy": "molmo"},
    "samples": [
        {
            "scene_id": "s0",
            "instruction": "place the fork",
            "epochs": [{"success_at_end": 1.0, "episode_length": 60.0}, {}, {"success_at_end": 0, "episode_length": 9}],
            "termination_reasons": ["success", None, "max_steps"],
        }
    ],
}  # fmt: skip
