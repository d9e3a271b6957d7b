"""Readers of VMs and their addresses in files of RVTools, PowerCLI and MTV, templates and manifests."""
