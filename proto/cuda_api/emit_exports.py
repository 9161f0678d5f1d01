"""Emits the version script of a replacement library."""


def version_script(soname, exports):
    names = "".join(f"    {export.name};\n" for export in exports)
    return f"{soname} {{\n  global:\n{names}  local:\n    *;\n}};\n"
