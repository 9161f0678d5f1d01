"""cuBLAS, many small problems in one call.

Their matrices' addresses lie in arrays in device memory, which only the GPU reads: what is wrong
with one is cuBLAS's to find, as what is wrong with a pointer in a kernel's parameters.
"""

from cublas_words import (
    ALGORITHM, COMPUTE_TYPE, DATA_TYPE, DIAGONAL, FILL, HANDLE, INDEX, INT, OPERATION, SIDE,
    STRIDE, Any, consecutive, family)
from vocabulary import (
    Call, Element, In, InOut, Matrix, Out, ParameterInfo, Pointers, Scalar, Vector)

# One pivot a row, or none where the pointer is null.
_PIVOTS = Matrix(INDEX, "n", "batchSize", "AtLeastOne(n)")

CALLS = [
    *family(consecutive("HSDCZ", 1400), "cublas{}gemmBatched", lambda T, _: dict(
        handle=HANDLE, transa=OPERATION, transb=OPERATION, m=INT, n=INT, k=INT, alpha=Scalar(T),
        Aarray=In(Pointers(T, "batchCount")), lda=INT, Barray=In(Pointers(T, "batchCount")),
        ldb=INT, beta=Scalar(T), Carray=InOut(Pointers(T, "batchCount")), ldc=INT,
        batchCount=INT)),
    Call(1405, "cublasGemmBatchedEx", dict(
        handle=HANDLE, transa=OPERATION, transb=OPERATION, m=INT, n=INT, k=INT,
        alpha=Scalar(Element("void", "ScalarBytes(computeType, Ctype)")),
        Aarray=In(Pointers(Any("Atype"), "batchCount")), Atype=DATA_TYPE, lda=INT,
        Barray=In(Pointers(Any("Btype"), "batchCount")), Btype=DATA_TYPE, ldb=INT,
        beta=Scalar(Element("void", "ScalarBytes(computeType, Ctype)")),
        Carray=InOut(Pointers(Any("Ctype"), "batchCount")), Ctype=DATA_TYPE, ldc=INT,
        batchCount=INT, computeType=COMPUTE_TYPE, algo=ALGORITHM)),
    *family(consecutive("SDCZ", 1406), "cublas{}gemvBatched", lambda T, _: dict(
        handle=HANDLE, trans=OPERATION, m=INT, n=INT, alpha=Scalar(T),
        Aarray=In(Pointers(T, "batchCount")), lda=INT, xarray=In(Pointers(T, "batchCount")),
        incx=INT, beta=Scalar(T), yarray=InOut(Pointers(T, "batchCount")), incy=INT,
        batchCount=INT)),
    # A vector is a matrix of one row whose columns are an increment apart.
    *family(consecutive("SDCZ", 1410), "cublas{}gemvStridedBatched", lambda T, _: dict(
        handle=HANDLE, trans=OPERATION, m=INT, n=INT, alpha=Scalar(T),
        A=In(Matrix(T, "m", "n", "lda", "strideA", "batchCount")), lda=INT, strideA=STRIDE,
        x=In(Matrix(T, "1", "Oriented(trans, n, m)", "Magnitude(incx)", "stridex",
                    "batchCount")), incx=INT, stridex=STRIDE, beta=Scalar(T),
        y=InOut(Matrix(T, "1", "Oriented(trans, m, n)", "Magnitude(incy)", "stridey",
                       "batchCount")), incy=INT, stridey=STRIDE, batchCount=INT)),
    *family(consecutive("SDCZ", 1414), "cublas{}trsmBatched", lambda T, _: dict(
        handle=HANDLE, side=SIDE, uplo=FILL, trans=OPERATION, diag=DIAGONAL, m=INT, n=INT,
        alpha=Scalar(T), A=In(Pointers(T, "batchCount")), lda=INT,
        B=InOut(Pointers(T, "batchCount")), ldb=INT, batchCount=INT)),
    *family(consecutive("SDCZ", 1418), "cublas{}getrfBatched", lambda T, _: dict(
        handle=HANDLE, n=INT, A=InOut(Pointers(T, "batchSize")), lda=INT,
        P=Out(_PIVOTS, may_be_null=True), info=Out(Vector(INDEX, "batchSize", "1")),
        batchSize=INT)),
    *family(consecutive("SDCZ", 1422), "cublas{}getrsBatched", lambda T, _: dict(
        handle=HANDLE, trans=OPERATION, n=INT, nrhs=INT, Aarray=In(Pointers(T, "batchSize")),
        lda=INT, devIpiv=In(_PIVOTS, may_be_null=True), Barray=InOut(Pointers(T, "batchSize")),
        ldb=INT, info=ParameterInfo(), batchSize=INT)),
    *family(consecutive("SDCZ", 1426), "cublas{}getriBatched", lambda T, _: dict(
        handle=HANDLE, n=INT, A=In(Pointers(T, "batchSize")), lda=INT,
        P=In(_PIVOTS, may_be_null=True), C=InOut(Pointers(T, "batchSize")), ldc=INT,
        info=Out(Vector(INDEX, "batchSize", "1")), batchSize=INT)),
    *family(consecutive("SDCZ", 1430), "cublas{}matinvBatched", lambda T, _: dict(
        handle=HANDLE, n=INT, A=In(Pointers(T, "batchSize")), lda=INT,
        Ainv=InOut(Pointers(T, "batchSize")), lda_inv=INT,
        info=Out(Vector(INDEX, "batchSize", "1")), batchSize=INT)),
    *family(consecutive("SDCZ", 1434), "cublas{}geqrfBatched", lambda T, _: dict(
        handle=HANDLE, m=INT, n=INT, Aarray=InOut(Pointers(T, "batchSize")), lda=INT,
        TauArray=InOut(Pointers(T, "batchSize")), info=ParameterInfo(), batchSize=INT)),
    *family(consecutive("SDCZ", 1438), "cublas{}gelsBatched", lambda T, _: dict(
        handle=HANDLE, trans=OPERATION, m=INT, n=INT, nrhs=INT,
        Aarray=InOut(Pointers(T, "batchSize")), lda=INT, Carray=InOut(Pointers(T, "batchSize")),
        ldc=INT, info=ParameterInfo(),
        devInfoArray=Out(Vector(INDEX, "batchSize", "1"), may_be_null=True), batchSize=INT)),
]
