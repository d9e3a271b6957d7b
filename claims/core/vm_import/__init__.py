"""VMs and their addresses as the files of administrators have them (facts: RVTools, PowerCLI, MTV)."""
