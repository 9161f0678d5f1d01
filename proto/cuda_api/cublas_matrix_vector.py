"""cuBLAS, matrices and vectors (level 2)."""

from cublas_words import (
    DIAGONAL, FILL, HANDLE, INT, OPERATION, consecutive, family)
from vocabulary import In, InOut, Matrix, Packed, Scalar, Vector

CALLS = [
    *family(dict(S=1080, D=1081, C=1082, Z=1083), "cublas{}gemv_v2", lambda T, _: dict(
        handle=HANDLE, trans=OPERATION, m=INT, n=INT, alpha=Scalar(T),
        A=In(Matrix(T, "m", "n", "lda")), lda=INT,
        x=In(Vector(T, "Oriented(trans, n, m)", "incx")), incx=INT, beta=Scalar(T),
        y=InOut(Vector(T, "Oriented(trans, m, n)", "incy")), incy=INT)),
    *family(dict(S=1084, D=1085), "cublas{}ger_v2", lambda T, _: dict(
        handle=HANDLE, m=INT, n=INT, alpha=Scalar(T), x=In(Vector(T, "m", "incx")), incx=INT,
        y=In(Vector(T, "n", "incy")), incy=INT, A=InOut(Matrix(T, "m", "n", "lda")), lda=INT)),
    *family(dict(S=1086, D=1087, C=1088, Z=1089), "cublas{}symv_v2", lambda T, _: dict(
        handle=HANDLE, uplo=FILL, n=INT, alpha=Scalar(T), A=In(Matrix(T, "n", "n", "lda")),
        lda=INT, x=In(Vector(T, "n", "incx")), incx=INT, beta=Scalar(T),
        y=InOut(Vector(T, "n", "incy")), incy=INT)),
    *family(dict(S=1090, D=1091, C=1092, Z=1093), "cublas{}trsv_v2", lambda T, _: dict(
        handle=HANDLE, uplo=FILL, trans=OPERATION, diag=DIAGONAL, n=INT,
        A=In(Matrix(T, "n", "n", "lda")), lda=INT, x=InOut(Vector(T, "n", "incx")), incx=INT)),
    *family(dict(S=1094, D=1095, C=1096, Z=1097), "cublas{}trmv_v2", lambda T, _: dict(
        handle=HANDLE, uplo=FILL, trans=OPERATION, diag=DIAGONAL, n=INT,
        A=In(Matrix(T, "n", "n", "lda")), lda=INT, x=InOut(Vector(T, "n", "incx")), incx=INT)),
    *family(dict(S=1098, D=1099, C=1100, Z=1101), "cublas{}syr_v2", lambda T, _: dict(
        handle=HANDLE, uplo=FILL, n=INT, alpha=Scalar(T), x=In(Vector(T, "n", "incx")), incx=INT,
        A=InOut(Matrix(T, "n", "n", "lda")), lda=INT)),
    *[call for suffix, first in (("u", 1200), ("c", 1202))
      for call in family(consecutive("CZ", first), "cublas{}ger" + suffix + "_v2", lambda T, _: dict(
          handle=HANDLE, m=INT, n=INT, alpha=Scalar(T), x=In(Vector(T, "m", "incx")), incx=INT,
          y=In(Vector(T, "n", "incy")), incy=INT, A=InOut(Matrix(T, "m", "n", "lda")), lda=INT))],
    *family(consecutive("CZ", 1204), "cublas{}hemv_v2", lambda T, _: dict(
        handle=HANDLE, uplo=FILL, n=INT, alpha=Scalar(T), A=In(Matrix(T, "n", "n", "lda")),
        lda=INT, x=In(Vector(T, "n", "incx")), incx=INT, beta=Scalar(T),
        y=InOut(Vector(T, "n", "incy")), incy=INT)),
    *family(consecutive("CZ", 1206), "cublas{}her_v2", lambda T, real: dict(
        handle=HANDLE, uplo=FILL, n=INT, alpha=Scalar(real), x=In(Vector(T, "n", "incx")),
        incx=INT, A=InOut(Matrix(T, "n", "n", "lda")), lda=INT)),
    *[call for letters, first, symbol in (("SDCZ", 1208, "cublas{}syr2_v2"),
                                          ("CZ", 1212, "cublas{}her2_v2"))
      for call in family(consecutive(letters, first), symbol, lambda T, _: dict(
          handle=HANDLE, uplo=FILL, n=INT, alpha=Scalar(T), x=In(Vector(T, "n", "incx")),
          incx=INT, y=In(Vector(T, "n", "incy")), incy=INT,
          A=InOut(Matrix(T, "n", "n", "lda")), lda=INT))],
    # Banded: a matrix's diagonals are the rows of what is stored.
    *family(consecutive("SDCZ", 1220), "cublas{}gbmv_v2", lambda T, _: dict(
        handle=HANDLE, trans=OPERATION, m=INT, n=INT, kl=INT, ku=INT, alpha=Scalar(T),
        A=In(Matrix(T, "BandRows(kl, ku)", "n", "lda")), lda=INT,
        x=In(Vector(T, "Oriented(trans, n, m)", "incx")), incx=INT, beta=Scalar(T),
        y=InOut(Vector(T, "Oriented(trans, m, n)", "incy")), incy=INT)),
    *[call for letters, first, symbol in (("SD", 1224, "cublas{}sbmv_v2"),
                                          ("CZ", 1226, "cublas{}hbmv_v2"))
      for call in family(consecutive(letters, first), symbol, lambda T, _: dict(
          handle=HANDLE, uplo=FILL, n=INT, k=INT, alpha=Scalar(T),
          A=In(Matrix(T, "BandRows(k, 0)", "n", "lda")), lda=INT, x=In(Vector(T, "n", "incx")),
          incx=INT, beta=Scalar(T), y=InOut(Vector(T, "n", "incy")), incy=INT))],
    *[call for first, symbol in ((1228, "cublas{}tbmv_v2"), (1232, "cublas{}tbsv_v2"))
      for call in family(consecutive("SDCZ", first), symbol, lambda T, _: dict(
          handle=HANDLE, uplo=FILL, trans=OPERATION, diag=DIAGONAL, n=INT, k=INT,
          A=In(Matrix(T, "BandRows(k, 0)", "n", "lda")), lda=INT,
          x=InOut(Vector(T, "n", "incx")), incx=INT))],
    # Packed.
    *[call for letters, first, symbol in (("SD", 1240, "cublas{}spmv_v2"),
                                          ("CZ", 1242, "cublas{}hpmv_v2"))
      for call in family(consecutive(letters, first), symbol, lambda T, _: dict(
          handle=HANDLE, uplo=FILL, n=INT, alpha=Scalar(T), AP=In(Packed(T, "n")),
          x=In(Vector(T, "n", "incx")), incx=INT, beta=Scalar(T),
          y=InOut(Vector(T, "n", "incy")), incy=INT))],
    *[call for letters, first, symbol in (("SD", 1244, "cublas{}spr_v2"),
                                          ("CZ", 1246, "cublas{}hpr_v2"))
      for call in family(consecutive(letters, first), symbol, lambda T, real: dict(
          handle=HANDLE, uplo=FILL, n=INT, alpha=Scalar(real), x=In(Vector(T, "n", "incx")),
          incx=INT, AP=InOut(Packed(T, "n"))))],
    *[call for letters, first, symbol in (("SD", 1248, "cublas{}spr2_v2"),
                                          ("CZ", 1250, "cublas{}hpr2_v2"))
      for call in family(consecutive(letters, first), symbol, lambda T, _: dict(
          handle=HANDLE, uplo=FILL, n=INT, alpha=Scalar(T), x=In(Vector(T, "n", "incx")),
          incx=INT, y=In(Vector(T, "n", "incy")), incy=INT, AP=InOut(Packed(T, "n"))))],
    *[call for first, symbol in ((1252, "cublas{}tpmv_v2"), (1256, "cublas{}tpsv_v2"))
      for call in family(consecutive("SDCZ", first), symbol, lambda T, _: dict(
          handle=HANDLE, uplo=FILL, trans=OPERATION, diag=DIAGONAL, n=INT, AP=In(Packed(T, "n")),
          x=InOut(Vector(T, "n", "incx")), incx=INT))],
    *family(consecutive("SDCZ", 1260), "cublas{}tpttr", lambda T, _: dict(
        handle=HANDLE, uplo=FILL, n=INT, AP=In(Packed(T, "n")),
        A=InOut(Matrix(T, "n", "n", "lda")), lda=INT)),
    *family(consecutive("SDCZ", 1264), "cublas{}trttp", lambda T, _: dict(
        handle=HANDLE, uplo=FILL, n=INT, A=In(Matrix(T, "n", "n", "lda")), lda=INT,
        AP=InOut(Packed(T, "n")))),
]
