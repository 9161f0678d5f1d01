"""Makes the C entries of the emulated cuBLAS that differ in their types only.

usage: generate_blas_entries.py CXX INCLUDE_DIRECTORY OUTPUT_DIRECTORY

Writes FILE_entries.inc for each FILE of FAMILIES. An entry gives its parameters to the function
template of its family, as std::complex where cuBLAS has structures of its own; so does the `_64`
entry, where the headers declare one and OpenBLAS can count so far. Writes openblas.h and lapack.h,
too: OpenBLAS and the LAPACK in it by element type.
"""

import itertools
import os
import re
import subprocess
import sys

# File -> template -> the entries that it serves; {} stands for each of what it lists.
FAMILIES = {
    "vector": {
        "Axpy": "cublas{S,D,C,Z}axpy_v2",
        "Scal": "cublas{S,D,C,Z,Cs,Zd}scal_v2",
        "Copy": "cublas{S,D,C,Z}copy_v2",
        "Swap": "cublas{S,D,C,Z}swap_v2",
        "Dot": "cublas{S,D}dot_v2 cublas{C,Z}dotu_v2",
        "Dotc": "cublas{C,Z}dotc_v2",
        "Nrm2": "cublas{S,D,Sc,Dz}nrm2_v2",
        "Asum": "cublas{S,D,Sc,Dz}asum_v2",
        "Iamax": "cublasI{s,d,c,z}amax_v2",
        "Iamin": "cublasI{s,d,c,z}amin_v2",
        "Rot": "cublas{S,D,C,Z,Cs,Zd}rot_v2",
        "Rotg": "cublas{S,D,C,Z}rotg_v2",
        "Rotm": "cublas{S,D}rotm_v2",
        "Rotmg": "cublas{S,D}rotmg_v2",
    },
    "matrix_vector": {
        "Gemv": "cublas{S,D,C,Z}gemv_v2",
        "Ger": "cublas{S,D}ger_v2 cublas{C,Z}geru_v2",
        "Gerc": "cublas{C,Z}gerc_v2",
        "Symv": "cublas{S,D,C,Z}symv_v2",
        "Hemv": "cublas{C,Z}hemv_v2",
        "Syr": "cublas{S,D,C,Z}syr_v2",
        "Her": "cublas{C,Z}her_v2",
        "Syr2": "cublas{S,D,C,Z}syr2_v2",
        "Her2": "cublas{C,Z}her2_v2",
        "Trmv": "cublas{S,D,C,Z}trmv_v2",
        "Trsv": "cublas{S,D,C,Z}trsv_v2",
    },
    "band_packed": {
        "Gbmv": "cublas{S,D,C,Z}gbmv_v2",
        "Sbmv": "cublas{S,D}sbmv_v2",
        "Hbmv": "cublas{C,Z}hbmv_v2",
        "Tbmv": "cublas{S,D,C,Z}tbmv_v2",
        "Tbsv": "cublas{S,D,C,Z}tbsv_v2",
        "Spmv": "cublas{S,D}spmv_v2",
        "Hpmv": "cublas{C,Z}hpmv_v2",
        "Spr": "cublas{S,D}spr_v2",
        "Hpr": "cublas{C,Z}hpr_v2",
        "Spr2": "cublas{S,D}spr2_v2",
        "Hpr2": "cublas{C,Z}hpr2_v2",
        "Tpmv": "cublas{S,D,C,Z}tpmv_v2",
        "Tpsv": "cublas{S,D,C,Z}tpsv_v2",
        "Tpttr": "cublas{S,D,C,Z}tpttr",
        "Trttp": "cublas{S,D,C,Z}trttp",
    },
    "matrix": {
        "Symm": "cublas{S,D,C,Z}symm_v2",
        "Hemm": "cublas{C,Z}hemm_v2",
        "Syrk": "cublas{S,D,C,Z}syrk_v2",
        "Herk": "cublas{C,Z}herk_v2",
        "Syr2k": "cublas{S,D,C,Z}syr2k_v2",
        "Her2k": "cublas{C,Z}her2k_v2",
        "Syrkx": "cublas{S,D,C,Z}syrkx",
        "Herkx": "cublas{C,Z}herkx",
        "Trmm": "cublas{S,D,C,Z}trmm_v2",
        "Trsm": "cublas{S,D,C,Z}trsm_v2",
        "Geam": "cublas{S,D,C,Z}geam",
        "Dgmm": "cublas{S,D,C,Z}dgmm",
    },
    "gemm": {
        "PlainGemm": "cublas{H,S,D,C,Z}gemm{_v2,} cublas{C,Z}gemm3m",
        "StridedGemm": "cublas{H,S,D,C,Z}gemmStridedBatched cublasCgemm3mStridedBatched",
        "BatchedGemm": "cublas{H,S,D,C,Z}gemmBatched cublasCgemm3mBatched",
        "MixedGemm": "cublasGemmEx",
        "StridedMixedGemm": "cublasGemmStridedBatchedEx",
        "BatchedMixedGemm": "cublasGemmBatchedEx",
        "SingleMixedGemm": "cublas{S,C}gemmEx",
    },
    "batched": {
        "GemvBatched": "cublas{S,D,C,Z}gemvBatched",
        "GemvStridedBatched": "cublas{S,D,C,Z}gemvStridedBatched",
        "TrsmBatched": "cublas{S,D,C,Z}trsmBatched",
        "GetrfBatched": "cublas{S,D,C,Z}getrfBatched",
        "GetrsBatched": "cublas{S,D,C,Z}getrsBatched",
        "GetriBatched": "cublas{S,D,C,Z}getriBatched",
        "MatinvBatched": "cublas{S,D,C,Z}matinvBatched",
        "GeqrfBatched": "cublas{S,D,C,Z}geqrfBatched",
        "GelsBatched": "cublas{S,D,C,Z}gelsBatched",
    },
    "extended": {
        "AxpyEx": "cublasAxpyEx",
        "ScalEx": "cublasScalEx",
        "DotEx": "cublasDotEx",
        "DotcEx": "cublasDotcEx",
        "Nrm2Ex": "cublasNrm2Ex",
        "RotEx": "cublasRotEx",
    },
}

# Letters -> OpenBLAS's functions for these types.
OPENBLAS = {
    "sdcz": "axpy scal copy swap gemv gbmv trmv tbmv tpmv trsv tbsv tpsv gemm symm syrk syr2k trmm"
            " trsm rotg",
    "sd": "dot symv sbmv spmv ger syr spr syr2 spr2 nrm2 asum rotm rotmg",
    "cz": "hemv hbmv hpmv geru gerc her hpr her2 hpr2 hemm herk her2k dotu_sub dotc_sub",
}
TYPES = {"s": "float", "d": "double", "c": "std::complex<float>", "z": "std::complex<double>"}
# Member -> the functions whose names follow another rule.
IRREGULAR = {"iamax": "i{}amax", "iamin": "i{}amin"}
IRREGULAR_COMPLEX = {"nrm2": {"c": "scnrm2", "z": "dznrm2"}, "asum": {"c": "scasum", "z": "dzasum"},
                     "real_scal": {"c": "csscal", "z": "zdscal"}}

# LAPACK's functions are Fortran's: everything is passed by address, and behind it come the lengths
# of strings.
LAPACK = {
    "getrf": "const int* m, const int* n, T* a, const int* lda, int* pivots, int* info",
    "getrs": "const char* trans, const int* n, const int* columns, const T* a, const int* lda,"
             " const int* pivots, T* b, const int* ldb, int* info, std::size_t trans_length",
    "getri": "const int* n, T* a, const int* lda, const int* pivots, T* work, const int* room,"
             " int* info",
    "geqrf": "const int* m, const int* n, T* a, const int* lda, T* tau, T* work, const int* room,"
             " int* info",
    "gels": "const char* trans, const int* m, const int* n, const int* columns, T* a,"
            " const int* lda, T* b, const int* ldb, T* work, const int* room, int* info,"
            " std::size_t trans_length",
}


def lapack_header():
    lines = ["#pragma once", "", "#include <complex>", "#include <cstddef>", "", 'extern "C" {']
    for letter, type_ in TYPES.items():
        for name, parameters in LAPACK.items():
            typed = re.sub(r"\bT\b", type_, parameters)
            lines.append(f"void {letter}{name}_({typed});")
    lines += ["}", "", "namespace torpor::emulator {", "", "template <typename T>",
              "struct Lapack;"]
    for letter, type_ in TYPES.items():
        lines += ["template <>", f"struct Lapack<{type_}> {{"]
        lines += [f"  static constexpr auto {name} = {letter}{name}_;" for name in LAPACK]
        lines.append("};")
    return "\n".join([*lines, "", "}  // namespace torpor::emulator", ""])


def openblas_header():
    lines = ["#pragma once", "", "#include <cblas.h>", "", "#include <complex>", "",
             "namespace torpor::emulator {", "", "template <typename T>", "struct OpenBlas;"]
    for letter, type_ in TYPES.items():
        members = {name: letter + name for letters, names in OPENBLAS.items() if letter in letters
                   for name in names.split()}
        members |= {name: pattern.format(letter) for name, pattern in IRREGULAR.items()}
        members |= {name: functions[letter] for name, functions in IRREGULAR_COMPLEX.items()
                    if letter in functions}
        lines += ["template <>", f"struct OpenBlas<{type_}> {{"]
        lines += [f"  static constexpr auto {name} = cblas_{function};"
                  for name, function in members.items()]
        lines.append("};")
    return "\n".join([*lines, "", "}  // namespace torpor::emulator", ""])


def expand(patterns):
    """The names that the patterns stand for."""
    for pattern in patterns.split():
        pieces = [piece.strip("{}").split(",") for piece in re.split(r"(\{[^}]*\})", pattern)]
        yield from ("".join(choice) for choice in itertools.product(*pieces))


def prototypes(compiler, include):
    """name -> text of the parameters, as the preprocessor leaves it."""
    command = [compiler, "-E", "-P", "-x", "c++", "-I" + include, "-include", "cublas_v2.h",
               "/dev/null"]
    text = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    found = re.findall(r"\bcublasStatus_t\s+(cublas\w+)\s*\(([^()]*)\)\s*;", text)
    return {name: " ".join(parameters.split()) for name, parameters in found}


def entry(name, parameters, template):
    pieces = [piece.strip() for piece in parameters.split(",")]
    names = [re.search(r"(\w+)(?:\[\])?$", piece).group(1) for piece in pieces]
    lines = [f"cublasStatus_t {name}({parameters}) {{"]
    wide = [n for n, piece in zip(names, pieces) if re.fullmatch(r"int64_t \w+", piece)]
    if wide:
        lines.append(f"  if (!FitsBlas({', '.join(wide)})) return CUBLAS_STATUS_NOT_SUPPORTED;")
    passed = ", ".join(f"Typed({parameter})" for parameter in names)
    return "\n".join([*lines, f"  return {template}({passed});", "}", ""])


def main():
    compiler, include, output = sys.argv[1:]
    for name, header in (("openblas.h", openblas_header()), ("lapack.h", lapack_header())):
        with open(os.path.join(output, name), "w", encoding="utf-8") as target:
            target.write(header)
    declared = prototypes(compiler, include)
    for file, families in FAMILIES.items():
        entries = []
        for template, patterns in families.items():
            for name in expand(patterns):
                entries += [entry(form, declared[form], template)
                            for form in (name, name + "_64") if form in declared]
        with open(os.path.join(output, file + "_entries.inc"), "w", encoding="utf-8") as target:
            target.write("\n".join(entries))


if __name__ == "__main__":
    main()
