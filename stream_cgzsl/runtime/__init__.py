"""What a process needs around its work: settings, metrics, devices, the environment that decides the last bits."""
