"""cuBLAS, matrices (level 3)."""

from cublas_words import (
    ALGORITHM, COMPUTE_TYPE, DATA_TYPE, DIAGONAL, FILL, HALF, HANDLE, INT, OPERATION, SIDE, STRIDE,
    Any, consecutive, family)
from vocabulary import Call, Element, In, InOut, Matrix, Scalar, Vector

CALLS = [
    *family(dict(S=1040, D=1041, C=1042, Z=1043), "cublas{}gemm_v2", lambda T, _: dict(
        handle=HANDLE, transa=OPERATION, transb=OPERATION, m=INT, n=INT, k=INT, alpha=Scalar(T),
        A=In(Matrix(T, "Oriented(transa, m, k)", "Oriented(transa, k, m)", "lda")), lda=INT,
        B=In(Matrix(T, "Oriented(transb, k, n)", "Oriented(transb, n, k)", "ldb")), ldb=INT,
        beta=Scalar(T), C=InOut(Matrix(T, "m", "n", "ldc")), ldc=INT)),
    *family(dict(S=1044, D=1045, C=1046, Z=1047), "cublas{}gemmStridedBatched", lambda T, _: dict(
        handle=HANDLE, transa=OPERATION, transb=OPERATION, m=INT, n=INT, k=INT, alpha=Scalar(T),
        A=In(Matrix(T, "Oriented(transa, m, k)", "Oriented(transa, k, m)", "lda", "strideA",
                    "batchCount")), lda=INT, strideA=STRIDE,
        B=In(Matrix(T, "Oriented(transb, k, n)", "Oriented(transb, n, k)", "ldb", "strideB",
                    "batchCount")), ldb=INT, strideB=STRIDE,
        beta=Scalar(T), C=InOut(Matrix(T, "m", "n", "ldc", "strideC", "batchCount")), ldc=INT,
        strideC=STRIDE, batchCount=INT)),
    Call(1048, "cublasGemmEx", dict(
        handle=HANDLE, transa=OPERATION, transb=OPERATION, m=INT, n=INT, k=INT,
        alpha=Scalar(Element("void", "ScalarBytes(computeType, Ctype)")),
        A=In(Matrix(Any("Atype"), "Oriented(transa, m, k)",
                    "Oriented(transa, k, m)", "lda")), Atype=DATA_TYPE, lda=INT,
        B=In(Matrix(Any("Btype"), "Oriented(transb, k, n)",
                    "Oriented(transb, n, k)", "ldb")), Btype=DATA_TYPE, ldb=INT,
        beta=Scalar(Element("void", "ScalarBytes(computeType, Ctype)")),
        C=InOut(Matrix(Any("Ctype"), "m", "n", "ldc")),
        Ctype=DATA_TYPE, ldc=INT, computeType=COMPUTE_TYPE, algo=ALGORITHM)),
    Call(1049, "cublasGemmStridedBatchedEx", dict(
        handle=HANDLE, transa=OPERATION, transb=OPERATION, m=INT, n=INT, k=INT,
        alpha=Scalar(Element("void", "ScalarBytes(computeType, Ctype)")),
        A=In(Matrix(Any("Atype"), "Oriented(transa, m, k)",
                    "Oriented(transa, k, m)", "lda", "strideA", "batchCount")),
        Atype=DATA_TYPE, lda=INT, strideA=STRIDE,
        B=In(Matrix(Any("Btype"), "Oriented(transb, k, n)",
                    "Oriented(transb, n, k)", "ldb", "strideB", "batchCount")),
        Btype=DATA_TYPE, ldb=INT, strideB=STRIDE,
        beta=Scalar(Element("void", "ScalarBytes(computeType, Ctype)")),
        C=InOut(Matrix(Any("Ctype"), "m", "n", "ldc", "strideC",
                       "batchCount")), Ctype=DATA_TYPE, ldc=INT, strideC=STRIDE,
        batchCount=INT, computeType=COMPUTE_TYPE, algo=ALGORITHM)),
    *family(dict(S=1050, D=1051, C=1052, Z=1053), "cublas{}syrk_v2", lambda T, _: dict(
        handle=HANDLE, uplo=FILL, trans=OPERATION, n=INT, k=INT, alpha=Scalar(T),
        A=In(Matrix(T, "Oriented(trans, n, k)", "Oriented(trans, k, n)", "lda")), lda=INT,
        beta=Scalar(T), C=InOut(Matrix(T, "n", "n", "ldc")), ldc=INT)),
    *family(dict(S=1054, D=1055, C=1056, Z=1057), "cublas{}symm_v2", lambda T, _: dict(
        handle=HANDLE, side=SIDE, uplo=FILL, m=INT, n=INT, alpha=Scalar(T),
        A=In(Matrix(T, "Sided(side, m, n)", "Sided(side, m, n)", "lda")), lda=INT,
        B=In(Matrix(T, "m", "n", "ldb")), ldb=INT, beta=Scalar(T),
        C=InOut(Matrix(T, "m", "n", "ldc")), ldc=INT)),
    *family(dict(S=1058, D=1059, C=1060, Z=1061), "cublas{}trsm_v2", lambda T, _: dict(
        handle=HANDLE, side=SIDE, uplo=FILL, trans=OPERATION, diag=DIAGONAL, m=INT, n=INT,
        alpha=Scalar(T), A=In(Matrix(T, "Sided(side, m, n)", "Sided(side, m, n)", "lda")),
        lda=INT, B=InOut(Matrix(T, "m", "n", "ldb")), ldb=INT)),
    *family(dict(S=1062, D=1063, C=1064, Z=1065), "cublas{}trmm_v2", lambda T, _: dict(
        handle=HANDLE, side=SIDE, uplo=FILL, trans=OPERATION, diag=DIAGONAL, m=INT, n=INT,
        alpha=Scalar(T), A=In(Matrix(T, "Sided(side, m, n)", "Sided(side, m, n)", "lda")),
        lda=INT, B=In(Matrix(T, "m", "n", "ldb")), ldb=INT, C=InOut(Matrix(T, "m", "n", "ldc")),
        ldc=INT)),
    # What a factor of zero stands before may be null.
    *family(dict(S=1066, D=1067, C=1068, Z=1069), "cublas{}geam", lambda T, _: dict(
        handle=HANDLE, transa=OPERATION, transb=OPERATION, m=INT, n=INT, alpha=Scalar(T),
        A=In(Matrix(T, "Oriented(transa, m, n)", "Oriented(transa, n, m)", "lda"),
             may_be_null=True), lda=INT,
        beta=Scalar(T),
        B=In(Matrix(T, "Oriented(transb, m, n)", "Oriented(transb, n, m)", "ldb"),
             may_be_null=True), ldb=INT,
        C=InOut(Matrix(T, "m", "n", "ldc")), ldc=INT)),
    *family(dict(S=1070, D=1071, C=1072, Z=1073), "cublas{}dgmm", lambda T, _: dict(
        handle=HANDLE, mode=SIDE, m=INT, n=INT, A=In(Matrix(T, "m", "n", "lda")), lda=INT,
        x=In(Vector(T, "Sided(mode, m, n)", "incx")), incx=INT,
        C=InOut(Matrix(T, "m", "n", "ldc")), ldc=INT)),
    *[call for letters, first, symbol in (("H", 1280, "cublas{}gemm"), ("CZ", 1281, "cublas{}gemm3m"))
      for call in family(consecutive(letters, first), symbol, lambda T, _: dict(
          handle=HANDLE, transa=OPERATION, transb=OPERATION, m=INT, n=INT, k=INT, alpha=Scalar(T),
          A=In(Matrix(T, "Oriented(transa, m, k)", "Oriented(transa, k, m)", "lda")), lda=INT,
          B=In(Matrix(T, "Oriented(transb, k, n)", "Oriented(transb, n, k)", "ldb")), ldb=INT,
          beta=Scalar(T), C=InOut(Matrix(T, "m", "n", "ldc")), ldc=INT))],
    Call(1283, "cublasHgemmStridedBatched", dict(
        handle=HANDLE, transa=OPERATION, transb=OPERATION, m=INT, n=INT, k=INT,
        alpha=Scalar(HALF),
        A=In(Matrix(HALF, "Oriented(transa, m, k)", "Oriented(transa, k, m)", "lda", "strideA",
                    "batchCount")), lda=INT, strideA=STRIDE,
        B=In(Matrix(HALF, "Oriented(transb, k, n)", "Oriented(transb, n, k)", "ldb", "strideB",
                    "batchCount")), ldb=INT, strideB=STRIDE,
        beta=Scalar(HALF), C=InOut(Matrix(HALF, "m", "n", "ldc", "strideC", "batchCount")),
        ldc=INT, strideC=STRIDE, batchCount=INT)),
    *family(consecutive("SC", 1284), "cublas{}gemmEx", lambda T, _: dict(
        handle=HANDLE, transa=OPERATION, transb=OPERATION, m=INT, n=INT, k=INT, alpha=Scalar(T),
        A=In(Matrix(Any("Atype"), "Oriented(transa, m, k)", "Oriented(transa, k, m)", "lda")),
        Atype=DATA_TYPE, lda=INT,
        B=In(Matrix(Any("Btype"), "Oriented(transb, k, n)", "Oriented(transb, n, k)", "ldb")),
        Btype=DATA_TYPE, ldb=INT, beta=Scalar(T), C=InOut(Matrix(Any("Ctype"), "m", "n", "ldc")),
        Ctype=DATA_TYPE, ldc=INT)),
    *family(consecutive("CZ", 1286), "cublas{}hemm_v2", lambda T, _: dict(
        handle=HANDLE, side=SIDE, uplo=FILL, m=INT, n=INT, alpha=Scalar(T),
        A=In(Matrix(T, "Sided(side, m, n)", "Sided(side, m, n)", "lda")), lda=INT,
        B=In(Matrix(T, "m", "n", "ldb")), ldb=INT, beta=Scalar(T),
        C=InOut(Matrix(T, "m", "n", "ldc")), ldc=INT)),
    *family(consecutive("CZ", 1288), "cublas{}herk_v2", lambda T, real: dict(
        handle=HANDLE, uplo=FILL, trans=OPERATION, n=INT, k=INT, alpha=Scalar(real),
        A=In(Matrix(T, "Oriented(trans, n, k)", "Oriented(trans, k, n)", "lda")), lda=INT,
        beta=Scalar(real), C=InOut(Matrix(T, "n", "n", "ldc")), ldc=INT)),
    *[call for letters, first, symbol, is_hermitian in (
        ("SDCZ", 1290, "cublas{}syr2k_v2", False), ("CZ", 1294, "cublas{}her2k_v2", True),
        ("SDCZ", 1296, "cublas{}syrkx", False), ("CZ", 1300, "cublas{}herkx", True))
      for call in family(consecutive(letters, first), symbol, lambda T, real: dict(
          handle=HANDLE, uplo=FILL, trans=OPERATION, n=INT, k=INT, alpha=Scalar(T),
          A=In(Matrix(T, "Oriented(trans, n, k)", "Oriented(trans, k, n)", "lda")), lda=INT,
          B=In(Matrix(T, "Oriented(trans, n, k)", "Oriented(trans, k, n)", "ldb")), ldb=INT,
          beta=Scalar(real if is_hermitian else T), C=InOut(Matrix(T, "n", "n", "ldc")),
          ldc=INT))],
]
