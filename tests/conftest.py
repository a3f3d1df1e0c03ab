pytest_plugins = ["testkit.plugin", "testkit.parallel"]
