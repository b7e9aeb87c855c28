# SPDX-License-Identifier: Apache-2.0
"""Models for firmware: `export_model_library_format` writes what its build takes. No runtime is needed there (docs/aot.md)."""
from .model_library_format import UnsupportedInModelLibraryFormatError, export_model_library_format

__all__ = ["UnsupportedInModelLibraryFormatError", "export_model_library_format"]
