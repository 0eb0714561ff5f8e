import pytest

pytest.register_assert_rewrite("agents.end_to_end.place", "agents.end_to_end.scenarios", "agents.end_to_end.ends")
