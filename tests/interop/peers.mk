# Real peers: `make peer-NAME` sets one up, in an environment of its own where it wants other packages, and runs the
# tests against it. What only Debian's packages bring is named where it is missing. Sizes and times: CONTRIBUTING.md
PEERS = build/peers
AGAINST = $(VENV)/bin/python -m pytest -q -rsfxE -m interop
needs = @command -v $(1) >/dev/null || ls $(2) >/dev/null 2>&1 || { echo "needs Debian's package: apt-get install $(3)" >&2; exit 2; }

.PHONY: peer-viewer peer-browser peer-openpi peer-franka-sim peer-franky-sim peer-pylibfranka peer-ur-recipe peer-ur-client peer-metadata peer-notebook peer-lerobot

peer-viewer: $(VENV)/.installed-test
	$(call needs,chromium,/usr/bin/chromium,chromium)
	$(call needs,ffmpeg,/usr/bin/ffmpeg,ffmpeg)
	$(call needs,vulkaninfo,/usr/share/vulkan/icd.d/lvp_icd.*,mesa-vulkan-drivers)
	$(AGAINST) tests/interop/test_viewer.py

peer-browser: $(VENV)/.installed-test
	$(call needs,chromium,/usr/bin/chromium,chromium)
	$(PIP) install -c constraints.txt -e '.[web]'
	$(AGAINST) tests/interop/test_console_browser.py tests/interop/test_clock_page.py tests/interop/test_review_page.py tests/interop/test_review_page_tasks.py tests/interop/test_episodes_page.py tests/interop/test_report_page.py tests/interop/test_site_browser.py

peer-openpi: $(VENV)/.installed-test
	$(PYTHON) -m venv $(PEERS)/openpi && $(PEERS)/openpi/bin/pip install -q openpi-client typing_extensions
	OPENPI_CLIENT=$(abspath $(PEERS))/openpi/bin/python $(AGAINST) tests/interop/test_openpi_client.py

peer-franky-sim: $(VENV)/.installed-test
	$(PYTHON) -m venv $(PEERS)/franky-sim && $(PEERS)/franky-sim/bin/pip install -q 'franky-sim[mujoco]'
	FRANKY_SIM=$(abspath $(PEERS))/franky-sim/bin/franky-sim $(AGAINST) tests/interop/test_franky_sim.py

peer-franka-sim: $(VENV)/.installed-test
	$(PYTHON) -m venv $(PEERS)/franka-sim && $(PEERS)/franka-sim/bin/pip install -q franka-sim==1.1.7
	FRANKA_SIM=$(abspath $(PEERS))/franka-sim/bin/python $(AGAINST) tests/interop/test_franka_sim.py tests/interop/test_franka_sim_campaign.py

peer-ur-recipe: $(VENV)/.installed-test
	@test -f "$(UR_RECIPE)" || { echo "name the client library's examples/resources/rtde_output_recipe.txt: make peer-ur-recipe UR_RECIPE=FILE" >&2; exit 2; }
	UR_RECIPE="$(abspath $(UR_RECIPE))" $(AGAINST) tests/interop/test_ur_recipe.py

peer-pylibfranka: $(VENV)/.installed-test
	$(PIP) install pylibfranka
	$(AGAINST) tests/interop/test_pylibfranka.py

peer-metadata: $(VENV)/.installed-test
	$(PYTHON) -m venv $(PEERS)/metadata && $(PEERS)/metadata/bin/pip install -q mlcroissant huggingface_hub pyyaml feedparser opentelemetry-proto
	METADATA_PYTHON=$(abspath $(PEERS))/metadata/bin/python $(AGAINST) tests/interop/test_metadata.py tests/interop/test_feed_and_spans.py

# As a researcher has it: the wheel, by way of the source archive, in an environment of its own.
peer-notebook: $(VENV)/.installed-test
	rm -rf $(PEERS)/notebook-wheel
	$(VENV)/bin/python -m build --outdir $(PEERS)/notebook-wheel .
	$(PYTHON) -m venv $(PEERS)/notebook
	$(PEERS)/notebook/bin/pip install -q --upgrade --upgrade-strategy eager "$$(echo $(PEERS)/notebook-wheel/*.whl)[report,lab,parquet]" ipykernel nbclient pandas polars
	NOTEBOOK_PYTHON=$(abspath $(PEERS))/notebook/bin/python $(AGAINST) tests/interop/test_notebook.py

peer-lerobot: $(VENV)/.installed-test
	$(call needs,ffmpeg,/usr/bin/ffmpeg,ffmpeg)
	$(PYTHON) -m venv $(PEERS)/lerobot && $(PEERS)/lerobot/bin/pip install -q torch==2.13.0
	$(PEERS)/lerobot/bin/pip install -q --no-deps lerobot==0.4.4 torchvision==0.28.0 torchcodec==0.13.0
	$(PEERS)/lerobot/bin/pip install -q 'datasets>=4,<5' 'av>=15,<16' accelerate 'packaging<26' pillow msgpack websockets
	$(PYTHON) -m venv $(PEERS)/lerobot-v21 && $(PEERS)/lerobot-v21/bin/pip install -q torch==2.13.0
	$(PEERS)/lerobot-v21/bin/pip install -q --no-deps lerobot==0.3.3 torchvision==0.28.0 torchcodec==0.13.0
	$(PEERS)/lerobot-v21/bin/pip install -q 'datasets==3.6.0' 'av>=15,<16' accelerate 'packaging<26' pillow
	LEROBOT=$(abspath $(PEERS))/lerobot/bin/python LEROBOT_PYTHON=$(abspath $(PEERS))/lerobot/bin/python \
	  LEROBOT_V21_PYTHON=$(abspath $(PEERS))/lerobot-v21/bin/python \
	  $(AGAINST) tests/interop/test_lerobot.py tests/interop/test_lerobot_bridge.py

# DIR: a checkout of Universal_Robots_Client_Library; needs a C++ compiler and cmake
UR_CLIENT_BUILT = $(abspath $(PEERS))/ur-client
peer-ur-client: $(VENV)/.installed-test
	@test -f "$(UR_CLIENT)/examples/rtde_client.cpp" || { echo "name a checkout of the client library: make peer-ur-client UR_CLIENT=DIR" >&2; exit 2; }
	$(call needs,cmake,/usr/bin/cmake,cmake)
	$(call needs,c++,/usr/bin/c++,g++)
	cmake -S "$(UR_CLIENT)" -B $(UR_CLIENT_BUILT) -DCMAKE_CXX_FLAGS=-O0
	cmake --build $(UR_CLIENT_BUILT) --parallel 2 --target rtde_client_example primary_pipeline_calibration_example dashboard_example
	UR_CLIENT="$(abspath $(UR_CLIENT))" UR_CLIENT_BUILT=$(UR_CLIENT_BUILT) UR_RECIPE="$(abspath $(UR_CLIENT))/tests/resources/exhaustive_rtde_output_recipe.txt" \
	  $(AGAINST) tests/interop/test_ur_client.py tests/interop/test_ur_recipe.py
