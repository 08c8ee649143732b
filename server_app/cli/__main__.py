# SPDX-License-Identifier: Apache-2.0
"""``python -m server_app.cli``: the same as the script ``permsplit``."""

from server_app.cli import main

main()
