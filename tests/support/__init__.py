"""What tests share. The kind of model that they add is known wherever any of this is used."""

import tests.support.majority  # noqa: F401  (registers it)
