pytest_plugins = ["testkit.plugin"]
