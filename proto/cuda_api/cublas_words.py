"""The words of cuBLAS's tables: its types, and families of functions that differ in theirs only."""

from vocabulary import Call, Element, Handle, Value, i32, i64

# A precision's letter, its C type, and how its pointers look.
S, D = Element("float", "4"), Element("double", "8")
C, Z = Element("cuComplex", "8"), Element("cuDoubleComplex", "16")
HALF = Element("__half", "2")
PRECISIONS = {"H": HALF, "S": S, "D": D, "C": C, "Z": Z}
REAL_OF = {"H": HALF, "S": S, "D": D, "C": S, "Z": D}
INDEX = Element("int", "4")

HANDLE = Handle("Cublas")
INT = Value("int", i32)
STRIDE = Value("long long", i64)
OPERATION = Value("cublasOperation_t", i32, "IsOperation")
FILL = Value("cublasFillMode_t", i32, "IsFillMode")
SIDE = Value("cublasSideMode_t", i32, "IsSide")
DIAGONAL = Value("cublasDiagType_t", i32, "IsDiagonal")
DATA_TYPE = Value("cudaDataType", i32, "IsDataType")
COMPUTE_TYPE = Value("cublasComputeType_t", i32, "IsComputeType")
ALGORITHM = Value("cublasGemmAlgo_t", i32, "IsGemmAlgorithm")


def Any(data_type):
    """An element whose type another parameter, a cudaDataType, tells."""
    return Element("void", f"DataTypeBytes({data_type})")


def consecutive(letters, first):
    """Ids of a family: letter -> id."""
    return {letter: first + i for i, letter in enumerate(letters)}


def family(ids, symbol, parameters, host_ids=None, host_function=""):
    """One call a precision: `symbol` has {} or {lower} for its letter; `parameters` takes the
    element and its real part."""
    return [Call(id_, symbol.format(letter, lower=letter.lower()),
                 parameters(PRECISIONS[letter], REAL_OF[letter]),
                 host_ids[letter] if host_ids else None, host_function)
            for letter, id_ in ids.items()]
