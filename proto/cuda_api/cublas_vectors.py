"""cuBLAS, vectors (level 1)."""

from cublas_words import (
    DATA_TYPE, HANDLE, INDEX, INT, C, D, S, Z, Any, consecutive, family)
from vocabulary import (
    Access, Call, Element, In, InOut, Out, Scalar, ScalarResult, Vector)

CALLS = [
    *family(dict(S=1120, D=1121, C=1122, Z=1123), "cublas{}axpy_v2", lambda T, _: dict(
        handle=HANDLE, n=INT, alpha=Scalar(T), x=In(Vector(T, "n", "incx")), incx=INT,
        y=InOut(Vector(T, "n", "incy")), incy=INT)),
    *family(dict(S=1124, D=1125, C=1126, Z=1127), "cublas{}scal_v2", lambda T, _: dict(
        handle=HANDLE, n=INT, alpha=Scalar(T), x=InOut(Vector(T, "n", "incx")), incx=INT)),
    *family(dict(S=1128, D=1129, C=1130, Z=1131), "cublas{}copy_v2", lambda T, _: dict(
        handle=HANDLE, n=INT, x=In(Vector(T, "n", "incx")), incx=INT,
        y=Out(Vector(T, "n", "incy")), incy=INT)),
    *family(dict(S=1132, D=1133, C=1134, Z=1135), "cublas{}swap_v2", lambda T, _: dict(
        handle=HANDLE, n=INT, x=InOut(Vector(T, "n", "incx")), incx=INT,
        y=InOut(Vector(T, "n", "incy")), incy=INT)),
    *family(dict(S=1136, D=1137), "cublas{}dot_v2", lambda T, _: dict(
        handle=HANDLE, n=INT, x=In(Vector(T, "n", "incx")), incx=INT,
        y=In(Vector(T, "n", "incy")), incy=INT, result=ScalarResult(T)),
            host_ids=dict(S=1138, D=1139)),
    *family(dict(C=1140, Z=1141), "cublas{}dotu_v2", lambda T, _: dict(
        handle=HANDLE, n=INT, x=In(Vector(T, "n", "incx")), incx=INT,
        y=In(Vector(T, "n", "incy")), incy=INT, result=ScalarResult(T)),
            host_ids=dict(C=1142, Z=1143)),
    *family(dict(C=1144, Z=1145), "cublas{}dotc_v2", lambda T, _: dict(
        handle=HANDLE, n=INT, x=In(Vector(T, "n", "incx")), incx=INT,
        y=In(Vector(T, "n", "incy")), incy=INT, result=ScalarResult(T)),
            host_ids=dict(C=1146, Z=1147)),
    *family(dict(S=1148, D=1149), "cublas{}nrm2_v2", lambda T, real: dict(
        handle=HANDLE, n=INT, x=In(Vector(T, "n", "incx")), incx=INT, result=ScalarResult(real)),
            host_ids=dict(S=1150, D=1151)),
    *family(dict(S=1152, D=1153), "cublas{}asum_v2", lambda T, real: dict(
        handle=HANDLE, n=INT, x=In(Vector(T, "n", "incx")), incx=INT, result=ScalarResult(real)),
            host_ids=dict(S=1154, D=1155)),
    *family(dict(S=1156, D=1157, C=1158, Z=1159), "cublasI{lower}amax_v2", lambda T, _: dict(
        handle=HANDLE, n=INT, x=In(Vector(T, "n", "incx")), incx=INT,
        result=ScalarResult(INDEX)), host_ids=dict(S=1160, D=1161, C=1162, Z=1163)),
    *family(dict(S=1164, D=1165, C=1166, Z=1167), "cublasI{lower}amin_v2", lambda T, _: dict(
        handle=HANDLE, n=INT, x=In(Vector(T, "n", "incx")), incx=INT,
        result=ScalarResult(INDEX)), host_ids=dict(S=1168, D=1169, C=1170, Z=1171)),
    # Real factors of complex vectors.
    Call(1172, "cublasCsscal_v2", dict(
        handle=HANDLE, n=INT, alpha=Scalar(S), x=InOut(Vector(C, "n", "incx")), incx=INT)),
    Call(1173, "cublasZdscal_v2", dict(
        handle=HANDLE, n=INT, alpha=Scalar(D), x=InOut(Vector(Z, "n", "incx")), incx=INT)),
    *[Call(id_, symbol, dict(handle=HANDLE, n=INT, x=In(Vector(T, "n", "incx")), incx=INT,
                             result=ScalarResult(real)), host_id)
      for id_, host_id, symbol, T, real in (
          (1174, 1178, "cublasScnrm2_v2", C, S), (1175, 1179, "cublasDznrm2_v2", Z, D),
          (1176, 1180, "cublasScasum_v2", C, S), (1177, 1181, "cublasDzasum_v2", Z, D))],
    *[Call(id_, symbol, dict(
        handle=HANDLE, n=INT, x=InOut(Vector(T, "n", "incx")), incx=INT,
        y=InOut(Vector(T, "n", "incy")), incy=INT, c=Scalar(cosine), s=Scalar(sine)))
      for id_, symbol, T, cosine, sine in (
          (1182, "cublasSrot_v2", S, S, S), (1183, "cublasDrot_v2", D, D, D),
          (1184, "cublasCrot_v2", C, S, C), (1185, "cublasZrot_v2", Z, D, Z),
          (1186, "cublasCsrot_v2", C, S, S), (1187, "cublasZdrot_v2", Z, D, D))],
    *[Call(id_, symbol, dict(
        handle=HANDLE, n=INT, x=InOut(Vector(T, "n", "incx")), incx=INT,
        y=InOut(Vector(T, "n", "incy")), incy=INT, param=Scalar(Element(T.c_type, bytes_))))
      for id_, symbol, T, bytes_ in ((1188, "cublasSrotm_v2", S, "20"),
                                     (1189, "cublasDrotm_v2", D, "40"))],
    *family(consecutive("SDCZ", 1500), "cublas{}rotg_v2", lambda T, real: dict(
        handle=HANDLE, a=ScalarResult(T, Access.READ_WRITE), b=ScalarResult(T, Access.READ_WRITE),
        c=ScalarResult(real), s=ScalarResult(T)), host_function="Rotg"),
    *[Call(id_, symbol, dict(
        handle=HANDLE, d1=ScalarResult(T, Access.READ_WRITE),
        d2=ScalarResult(T, Access.READ_WRITE), x1=ScalarResult(T, Access.READ_WRITE),
        y1=ScalarResult(T, Access.READ), param=ScalarResult(Element(T.c_type, bytes_))),
           host_function="Rotmg")
      for id_, symbol, T, bytes_ in ((1504, "cublasSrotmg_v2", S, "20"),
                                     (1505, "cublasDrotmg_v2", D, "40"))],
    # Mixed types.
    Call(1190, "cublasAxpyEx", dict(
        handle=HANDLE, n=INT, alpha=Scalar(Any("alphaType")), alphaType=DATA_TYPE,
        x=In(Vector(Any("xType"), "n", "incx")), xType=DATA_TYPE, incx=INT,
        y=InOut(Vector(Any("yType"), "n", "incy")), yType=DATA_TYPE, incy=INT,
        executiontype=DATA_TYPE)),
    Call(1191, "cublasScalEx", dict(
        handle=HANDLE, n=INT, alpha=Scalar(Any("alphaType")), alphaType=DATA_TYPE,
        x=InOut(Vector(Any("xType"), "n", "incx")), xType=DATA_TYPE, incx=INT,
        executionType=DATA_TYPE)),
    *[Call(id_, symbol, dict(
        handle=HANDLE, n=INT, x=In(Vector(Any("xType"), "n", "incx")), xType=DATA_TYPE, incx=INT,
        y=In(Vector(Any("yType"), "n", "incy")), yType=DATA_TYPE, incy=INT,
        result=ScalarResult(Any("resultType")), resultType=DATA_TYPE, executionType=DATA_TYPE),
        host_id)
      for id_, host_id, symbol in ((1192, 1194, "cublasDotEx"), (1193, 1195, "cublasDotcEx"))],
    Call(1196, "cublasNrm2Ex", dict(
        handle=HANDLE, n=INT, x=In(Vector(Any("xType"), "n", "incx")), xType=DATA_TYPE, incx=INT,
        result=ScalarResult(Any("resultType")), resultType=DATA_TYPE, executionType=DATA_TYPE),
         1197),
    Call(1198, "cublasRotEx", dict(
        handle=HANDLE, n=INT, x=InOut(Vector(Any("xType"), "n", "incx")), xType=DATA_TYPE,
        incx=INT, y=InOut(Vector(Any("yType"), "n", "incy")), yType=DATA_TYPE, incy=INT,
        c=Scalar(Any("csType")), s=Scalar(Any("csType")), csType=DATA_TYPE,
        executiontype=DATA_TYPE)),
]
