"""VMs and their addresses as the files of administrators have them: those of RVTools, PowerCLI and MTV."""
