# SPDX-License-Identifier: Apache-2.0
"""What the server runs, and where all is wired: ServerApp, trunk, checkpoints, command line."""
