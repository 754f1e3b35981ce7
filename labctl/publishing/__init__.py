"""Campaigns for people outside: a folder that anybody verifies without the lab, and a site made of several of them."""
