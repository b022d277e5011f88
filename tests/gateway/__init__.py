"""The gateway over real sockets, between fakes of agent, spawner and meter."""
