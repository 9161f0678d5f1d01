"""cuDNN: its legacy API, and the backend (graph) API. Ids 3072 to 4095.

Descriptors travel by value, and so does the only thing that is set on a handle, its stream.
"""

from vocabulary import (
    LOCAL, STREAM, SYNC, Bytes, Call, Described, Descriptor, HostScalar, In, InOut, Library, Out,
    SizeAnswer, StreamHandle, Struct, Type, Value, command, custom, f32, f64, i32, i64, u32, u64,
    value, vector)

HANDLE = StreamHandle("Cudnn")


def _descriptor(kind, value_type):
    return Descriptor(f"cudnn{kind}Descriptor_t", Type(value_type))


TENSOR, FILTER = _descriptor("Tensor", "DnnTensor"), _descriptor("Filter", "DnnFilter")
CONVOLUTION = _descriptor("Convolution", "DnnConvolution")
POOLING = _descriptor("Pooling", "DnnPooling")
TRANSFORMER = _descriptor("SpatialTransformer", "DnnSpatialTransformer")
ACTIVATION = _descriptor("Activation", "DnnActivation")
OPERATION = _descriptor("OpTensor", "DnnOpTensor")
REDUCTION = _descriptor("ReduceTensor", "DnnReduceTensor")
LRN = _descriptor("LRN", "DnnLrn")
RNN = _descriptor("RNN", "DnnRnn")

SOFTMAX_ALGORITHM = Value("cudnnSoftmaxAlgorithm_t", i32, "DnnIsSoftmaxAlgorithm")
SOFTMAX_MODE = Value("cudnnSoftmaxMode_t", i32, "DnnIsSoftmaxMode")
LRN_MODE = Value("cudnnLRNMode_t", i32, "DnnIsLrnMode")
NORM_MODE = Value("cudnnBatchNormMode_t", i32, "DnnIsBatchNormMode")
FORWARD = Value("cudnnConvolutionFwdAlgo_t", i32, "DnnIsForwardAlgorithm")
BACKWARD_DATA = Value("cudnnConvolutionBwdDataAlgo_t", i32, "DnnIsBackwardDataAlgorithm")
BACKWARD_FILTER = Value("cudnnConvolutionBwdFilterAlgo_t", i32, "DnnIsBackwardFilterAlgorithm")
DOUBLE, SIZE = Value("double", f64), Value("size_t", u64)
# Of the backend API (nvidia/cudnn/graph.h).
GRAPH, CONFIG = Type("DnnGraph"), Type("DnnEngineConfig")
ENGINE, CHOICE = Type("DnnEngine"), Type("DnnEngineChoice")
# Of recurrent layers (nvidia/cudnn/recurrent.h).
RNN_DATA, RNN_SHAPES, DROPOUT = Type("DnnRnnData"), Type("DnnRnnShapes"), Type("DnnDropout")

# Of a recurrent computation, beside its data.
_SPACES = dict(weights_bytes=u64, workspace=u64, workspace_bytes=u64, reserve=u64,
               reserve_bytes=u64)

COMMANDS = [
    command(3072, "CudnnConvolutionAlgorithms", SYNC, direction=u32, is_measured=u32, x=TENSOR.wire,
            w=FILTER.wire, convolution=CONVOLUTION.wire, y=TENSOR.wire, requested=u32,
            note="What the library recommends (or has found the fastest), best first. Direction 0"
                 " makes y of x, 1 the gradient of x, 2 that of w.",
            returns=dict(algorithms=vector(Struct("CudnnAlgorithm", "", {})))),
    command(3073, "CudnnGraphChoices", SYNC, graph=GRAPH, mode=u32,
            note="The configurations that the library's heuristic (cudnnBackendHeurMode_t) has for"
                 " a graph, best first.",
            returns=dict(choices=vector(CHOICE))),
    command(3074, "CudnnGraphEngine", SYNC, graph=GRAPH, engine=i64,
            note="What the library says of one of its engines.", returns=dict(description=ENGINE)),
    command(3075, "CudnnGraphPlan", SYNC, graph=GRAPH, config=CONFIG,
            note="Whether the graph can be executed so.", returns=dict(workspace_bytes=u64)),
    command(3076, "CudnnGraphExecute", STREAM, stream=u64, graph=GRAPH, config=CONFIG,
            addresses=vector(u64), workspace=u64, workspace_bytes=u64,
            note="Addresses of the graph's tensors in their order; virtual ones have none."),
    command(3077, "CudnnRnnForward", STREAM, stream=u64, shapes=RNN_SHAPES, is_training=u32, x=u64,
            y=u64, hx=u64, hy=u64, cx=u64, cy=u64, weights=u64, **_SPACES,
            note="Recurrent layers. States may have no address: they begin as zeros, and are not"
                 " wanted at the end."),
    command(3078, "CudnnRnnParameters", SYNC, rnn=RNN.wire, layer=u32,
            note="Where the library has the matrices and biases of a pseudo layer, by their"
                 " numbers.",
            returns=dict(parameters=vector(Struct("CudnnRnnParameter", "", {})))),
    command(3079, "CudnnRnnTempSpaces", SYNC, rnn=RNN.wire, is_training=u32, x=RNN_DATA,
            returns=dict(workspace_bytes=u64, reserve_bytes=u64)),
    command(3080, "CudnnDropoutStates", STREAM, stream=u64, dropout=DROPOUT,
            note="Begins a random generator anew, in its states."),
    command(3081, "CudnnRnnBackwardData", STREAM, stream=u64, shapes=RNN_SHAPES, y=u64, dy=u64,
            dx=u64, hx=u64, dhy=u64, dhx=u64, cx=u64, dcy=u64, dcx=u64, weights=u64, **_SPACES,
            note="The gradients of what a forward pass in training was given."),
    command(3082, "CudnnRnnBackwardWeights", STREAM, stream=u64, shapes=RNN_SHAPES, adds=u32, x=u64,
            hx=u64, y=u64, weights=u64, **_SPACES,
            note="Those of its weights, after those of the data; added to what is there, or not."),
]

STRUCTS = [
    Struct("CudnnAlgorithm", "One that a convolution can be computed by.", dict(
        algorithm=i32, status=i32, time_ms=f32, workspace_bytes=u64, determinism=i32,
        math_type=i32)),
    Struct("CudnnRnnParameter", "By offsets in the weight space; of rank 0 where there is none.",
           dict(matrix=TENSOR.wire, matrix_offset=u64, bias=TENSOR.wire, bias_offset=u64)),
]


def _in(tensor, may_be_null=False):
    return In(Described(tensor), may_be_null)


def _out(tensor, may_be_null=False):
    return InOut(Described(tensor), may_be_null)  # a beta may ask for what was there


def _workspace(size):
    return Out(Bytes(size), may_be_null=True)


def _blend(*names):
    """Scalars with which results are put together: of single precision, or double."""
    return {name: HostScalar("xDesc") for name in names}


_TENSORS = [
    Call(3100, "cudnnSetTensor", dict(
        handle=HANDLE, yDesc=TENSOR, y=_out("yDesc"), valuePtr=HostScalar("yDesc",
                                                                          "DnnTypeBytes"))),
    Call(3101, "cudnnScaleTensor", dict(
        handle=HANDLE, yDesc=TENSOR, y=_out("yDesc"), alpha=HostScalar("yDesc"))),
    Call(3102, "cudnnAddTensor", dict(
        handle=HANDLE, alpha=HostScalar("cDesc"), aDesc=TENSOR, A=_in("aDesc"),
        beta=HostScalar("cDesc"), cDesc=TENSOR, C=_out("cDesc"))),
    Call(3103, "cudnnTransformTensor", dict(
        handle=HANDLE, alpha=HostScalar("yDesc"), xDesc=TENSOR, x=_in("xDesc"),
        beta=HostScalar("yDesc"), yDesc=TENSOR, y=_out("yDesc"))),
    Call(3104, "cudnnOpTensor", dict(
        handle=HANDLE, opTensorDesc=OPERATION, alpha1=HostScalar("cDesc"), aDesc=TENSOR,
        A=_in("aDesc"), alpha2=HostScalar("cDesc"), bDesc=TENSOR, B=_in("bDesc"),
        beta=HostScalar("cDesc"), cDesc=TENSOR, C=_out("cDesc"))),
    Call(3105, "cudnnReduceTensor", dict(
        handle=HANDLE, reduceTensorDesc=REDUCTION, indices=_workspace("indicesSizeInBytes"),
        indicesSizeInBytes=SIZE, workspace=_workspace("workspaceSizeInBytes"),
        workspaceSizeInBytes=SIZE, alpha=HostScalar("cDesc"), aDesc=TENSOR, A=_in("aDesc"),
        beta=HostScalar("cDesc"), cDesc=TENSOR, C=_out("cDesc"))),
    *(Call(id_, f"cudnnGetReduction{what}Size", dict(
        handle=HANDLE, reduceTensorDesc=REDUCTION, aDesc=TENSOR, cDesc=TENSOR,
        sizeInBytes=SizeAnswer())) for id_, what in ((3106, "Indices"), (3107, "Workspace"))),
]

# Functions of each element, or of a few around it; forward and backward.
_LAYERS = [
    Call(3110, "cudnnSoftmaxForward", dict(
        handle=HANDLE, algo=SOFTMAX_ALGORITHM, mode=SOFTMAX_MODE, alpha=HostScalar("yDesc"),
        xDesc=TENSOR, x=_in("xDesc"), beta=HostScalar("yDesc"), yDesc=TENSOR, y=_out("yDesc"))),
    Call(3111, "cudnnSoftmaxBackward", dict(
        handle=HANDLE, algo=SOFTMAX_ALGORITHM, mode=SOFTMAX_MODE, alpha=HostScalar("dxDesc"),
        yDesc=TENSOR, y=_in("yDesc"), dyDesc=TENSOR, dy=_in("dyDesc"), beta=HostScalar("dxDesc"),
        dxDesc=TENSOR, dx=_out("dxDesc"))),
    *(Call(id_, f"cudnn{name}Forward", dict(
        handle=HANDLE, **extra, alpha=HostScalar("yDesc"), xDesc=TENSOR, x=_in("xDesc"),
        beta=HostScalar("yDesc"), yDesc=TENSOR, y=_out("yDesc")))
      for id_, name, extra in ((3112, "Pooling", dict(poolingDesc=POOLING)),
                               (3114, "Activation", dict(activationDesc=ACTIVATION)),
                               (3116, "LRNCrossChannel", dict(normDesc=LRN, lrnMode=LRN_MODE)))),
    *(Call(id_, f"cudnn{name}Backward", dict(
        handle=HANDLE, **extra, alpha=HostScalar("dxDesc"), yDesc=TENSOR, y=_in("yDesc"),
        dyDesc=TENSOR, dy=_in("dyDesc"), xDesc=TENSOR, x=_in("xDesc"), beta=HostScalar("dxDesc"),
        dxDesc=TENSOR, dx=_out("dxDesc")))
      for id_, name, extra in ((3113, "Pooling", dict(poolingDesc=POOLING)),
                               (3115, "Activation", dict(activationDesc=ACTIVATION)),
                               (3117, "LRNCrossChannel", dict(normDesc=LRN, lrnMode=LRN_MODE)))),
]

# Of the spatial transformer's descriptor (nvidia/cudnn/spatial.h).
_GRID, _THETA = (Bytes(f"DnnBytes(Dnn{what}(stDesc))") for what in ("Grid", "Theta"))
_SPATIAL = [
    Call(3180, "cudnnSpatialTfGridGeneratorForward", dict(
        handle=HANDLE, stDesc=TRANSFORMER, theta=In(_THETA), grid=Out(_GRID))),
    Call(3181, "cudnnSpatialTfGridGeneratorBackward", dict(
        handle=HANDLE, stDesc=TRANSFORMER, dgrid=In(_GRID), dtheta=Out(_THETA))),
    Call(3182, "cudnnSpatialTfSamplerForward", dict(
        handle=HANDLE, stDesc=TRANSFORMER, alpha=HostScalar("yDesc"), xDesc=TENSOR, x=_in("xDesc"),
        grid=In(_GRID), beta=HostScalar("yDesc"), yDesc=TENSOR, y=_out("yDesc"))),
    Call(3183, "cudnnSpatialTfSamplerBackward", dict(
        handle=HANDLE, stDesc=TRANSFORMER, alpha=HostScalar("dxDesc"), xDesc=TENSOR, x=_in("xDesc"),
        beta=HostScalar("dxDesc"), dxDesc=TENSOR, dx=_out("dxDesc"),
        alphaDgrid=HostScalar("stDesc"), dyDesc=TENSOR, dy=_in("dyDesc"), grid=In(_GRID),
        betaDgrid=HostScalar("stDesc"), dgrid=InOut(_GRID))),
]

_STATISTICS = "bnScaleBiasMeanVarDesc"
_NORMALISATION = [
    Call(3120, "cudnnBatchNormalizationForwardInference", dict(
        handle=HANDLE, mode=NORM_MODE, **_blend("alpha", "beta"), xDesc=TENSOR, x=_in("xDesc"),
        yDesc=TENSOR, y=_out("yDesc"), bnScaleBiasMeanVarDesc=TENSOR, bnScale=_in(_STATISTICS),
        bnBias=_in(_STATISTICS), estimatedMean=_in(_STATISTICS),
        estimatedVariance=_in(_STATISTICS), epsilon=DOUBLE)),
    Call(3121, "cudnnBatchNormalizationForwardTraining", dict(
        handle=HANDLE, mode=NORM_MODE, **_blend("alpha", "beta"), xDesc=TENSOR, x=_in("xDesc"),
        yDesc=TENSOR, y=_out("yDesc"), bnScaleBiasMeanVarDesc=TENSOR, bnScale=_in(_STATISTICS),
        bnBias=_in(_STATISTICS), exponentialAverageFactor=DOUBLE,
        resultRunningMean=_out(_STATISTICS, may_be_null=True),
        resultRunningVariance=_out(_STATISTICS, may_be_null=True), epsilon=DOUBLE,
        resultSaveMean=_out(_STATISTICS, may_be_null=True),
        resultSaveInvVariance=_out(_STATISTICS, may_be_null=True))),
    Call(3122, "cudnnBatchNormalizationBackward", dict(
        handle=HANDLE, mode=NORM_MODE,
        **_blend("alphaDataDiff", "betaDataDiff", "alphaParamDiff", "betaParamDiff"),
        xDesc=TENSOR, x=_in("xDesc"), dyDesc=TENSOR, dy=_in("dyDesc"), dxDesc=TENSOR,
        dx=_out("dxDesc"), dBnScaleBiasDesc=TENSOR, bnScale=_in("dBnScaleBiasDesc"),
        dBnScaleResult=_out("dBnScaleBiasDesc"), dBnBiasResult=_out("dBnScaleBiasDesc"),
        epsilon=DOUBLE, savedMean=_in("dBnScaleBiasDesc", may_be_null=True),
        savedInvVariance=_in("dBnScaleBiasDesc", may_be_null=True))),
]

_CONVOLUTION = [
    Call(3130, "cudnnConvolutionForward", dict(
        handle=HANDLE, alpha=HostScalar("yDesc"), xDesc=TENSOR, x=_in("xDesc"), wDesc=FILTER,
        w=_in("wDesc"), convDesc=CONVOLUTION, algo=FORWARD,
        workSpace=_workspace("workSpaceSizeInBytes"), workSpaceSizeInBytes=SIZE,
        beta=HostScalar("yDesc"), yDesc=TENSOR, y=_out("yDesc"))),
    Call(3131, "cudnnConvolutionBiasActivationForward", dict(
        handle=HANDLE, alpha1=HostScalar("yDesc"), xDesc=TENSOR, x=_in("xDesc"), wDesc=FILTER,
        w=_in("wDesc"), convDesc=CONVOLUTION, algo=FORWARD,
        workSpace=_workspace("workSpaceSizeInBytes"), workSpaceSizeInBytes=SIZE,
        alpha2=HostScalar("yDesc"), zDesc=TENSOR, z=_in("zDesc"), biasDesc=TENSOR,
        bias=_in("biasDesc"), activationDesc=ACTIVATION, yDesc=TENSOR, y=_out("yDesc"))),
    Call(3132, "cudnnConvolutionBackwardData", dict(
        handle=HANDLE, alpha=HostScalar("dxDesc"), wDesc=FILTER, w=_in("wDesc"), dyDesc=TENSOR,
        dy=_in("dyDesc"), convDesc=CONVOLUTION, algo=BACKWARD_DATA,
        workSpace=_workspace("workSpaceSizeInBytes"), workSpaceSizeInBytes=SIZE,
        beta=HostScalar("dxDesc"), dxDesc=TENSOR, dx=_out("dxDesc"))),
    Call(3133, "cudnnConvolutionBackwardFilter", dict(
        handle=HANDLE, alpha=HostScalar("dwDesc"), xDesc=TENSOR, x=_in("xDesc"), dyDesc=TENSOR,
        dy=_in("dyDesc"), convDesc=CONVOLUTION, algo=BACKWARD_FILTER,
        workSpace=_workspace("workSpaceSizeInBytes"), workSpaceSizeInBytes=SIZE,
        beta=HostScalar("dwDesc"), dwDesc=FILTER, dw=_out("dwDesc"))),
    Call(3134, "cudnnConvolutionBackwardBias", dict(
        handle=HANDLE, alpha=HostScalar("dbDesc"), dyDesc=TENSOR, dy=_in("dyDesc"),
        beta=HostScalar("dbDesc"), dbDesc=TENSOR, db=_out("dbDesc"))),
    Call(3135, "cudnnGetConvolutionForwardWorkspaceSize", dict(
        handle=HANDLE, xDesc=TENSOR, wDesc=FILTER, convDesc=CONVOLUTION, yDesc=TENSOR,
        algo=FORWARD, sizeInBytes=SizeAnswer())),
    Call(3136, "cudnnGetConvolutionBackwardDataWorkspaceSize", dict(
        handle=HANDLE, wDesc=FILTER, dyDesc=TENSOR, convDesc=CONVOLUTION, dxDesc=TENSOR,
        algo=BACKWARD_DATA, sizeInBytes=SizeAnswer())),
    Call(3137, "cudnnGetConvolutionBackwardFilterWorkspaceSize", dict(
        handle=HANDLE, xDesc=TENSOR, dyDesc=TENSOR, convDesc=CONVOLUTION, gradDesc=FILTER,
        algo=BACKWARD_FILTER, sizeInBytes=SizeAnswer())),
]

_RECURRENT = [
    Call(3140, "cudnnDropoutGetStatesSize", dict(handle=HANDLE, sizeInBytes=SizeAnswer())),
    Call(3141, "cudnnGetRNNWeightSpaceSize", dict(
        handle=HANDLE, rnnDesc=RNN, weightSpaceSize=SizeAnswer())),
]

# Of the real library, beside the calls.
_DESCRIPTORS = ("Tensor Filter Convolution Pooling SpatialTransformer Activation OpTensor"
                " ReduceTensor LRN Dropout RNN RNNData").split()
FUNCTIONS = (
    "cudnnCreate", "cudnnDestroy", "cudnnSetStream",
    *(f"cudnn{verb}{kind}Descriptor" for kind in _DESCRIPTORS for verb in ("Create", "Destroy")),
    "cudnnSetTensorNdDescriptor", "cudnnSetFilterNdDescriptor", "cudnnSetConvolutionNdDescriptor",
    "cudnnSetConvolutionMathType", "cudnnSetConvolutionGroupCount",
    "cudnnSetConvolutionReorderType", "cudnnSetPoolingNdDescriptor",
    "cudnnSetSpatialTransformerNdDescriptor",
    "cudnnSetActivationDescriptor", "cudnnSetActivationDescriptorSwishBeta",
    "cudnnSetOpTensorDescriptor", "cudnnSetReduceTensorDescriptor", "cudnnSetLRNDescriptor",
    "cudnnGetTensorNdDescriptor", "cudnnSetDropoutDescriptor", "cudnnRestoreDropoutDescriptor",
    "cudnnSetRNNDescriptor_v8", "cudnnSetRNNDataDescriptor", "cudnnGetRNNWeightParams",
    "cudnnGetRNNTempSpaceSizes", "cudnnRNNForward", "cudnnRNNBackwardData_v8",
    "cudnnRNNBackwardWeights_v8",
    *(f"cudnn{what}" for direction in ("Forward", "BackwardData", "BackwardFilter")
      for what in (f"GetConvolution{direction}Algorithm_v7",
                   f"FindConvolution{direction}Algorithm")),
    *(f"cudnnBackend{what}" for what in (
        "CreateDescriptor", "DestroyDescriptor", "SetAttribute", "GetAttribute", "Finalize",
        "Execute")),
)

_CUSTOM = {
    LOCAL: f"""
cudnnCreate cudnnDestroy cudnnSetStream cudnnGetStream cudnnGetErrorString cudnnGetProperty
{" ".join(f"cudnn{verb}{kind}Descriptor" for kind in _DESCRIPTORS
          for verb in ("Create", "Destroy"))}
cudnnSetTensor4dDescriptor cudnnSetTensor4dDescriptorEx cudnnSetTensorNdDescriptor
cudnnSetTensorNdDescriptorEx cudnnGetTensor4dDescriptor cudnnGetTensorNdDescriptor
cudnnGetTensorSizeInBytes cudnnDeriveBNTensorDescriptor
cudnnSetFilter4dDescriptor cudnnSetFilterNdDescriptor cudnnGetFilter4dDescriptor
cudnnGetFilterNdDescriptor cudnnGetFilterSizeInBytes
cudnnSetConvolution2dDescriptor cudnnSetConvolutionNdDescriptor cudnnGetConvolution2dDescriptor
cudnnGetConvolutionNdDescriptor cudnnSetConvolutionMathType cudnnGetConvolutionMathType
cudnnSetConvolutionGroupCount cudnnGetConvolutionGroupCount cudnnSetConvolutionReorderType
cudnnGetConvolutionReorderType cudnnGetConvolution2dForwardOutputDim
cudnnGetConvolutionNdForwardOutputDim
cudnnSetPooling2dDescriptor cudnnSetPoolingNdDescriptor cudnnGetPooling2dDescriptor
cudnnGetPoolingNdDescriptor cudnnGetPooling2dForwardOutputDim cudnnGetPoolingNdForwardOutputDim
cudnnSetSpatialTransformerNdDescriptor
cudnnSetActivationDescriptor cudnnGetActivationDescriptor cudnnSetActivationDescriptorSwishBeta
cudnnGetActivationDescriptorSwishBeta cudnnSetOpTensorDescriptor cudnnGetOpTensorDescriptor
cudnnSetReduceTensorDescriptor cudnnGetReduceTensorDescriptor cudnnSetLRNDescriptor
cudnnGetLRNDescriptor
cudnnRestoreDropoutDescriptor cudnnGetDropoutDescriptor cudnnSetRNNDescriptor_v8
cudnnGetRNNDescriptor_v8 cudnnSetRNNDataDescriptor cudnnGetRNNDataDescriptor
cudnnGetConvolutionForwardAlgorithmMaxCount cudnnGetConvolutionBackwardDataAlgorithmMaxCount
cudnnGetConvolutionBackwardFilterAlgorithmMaxCount
cudnnBackendCreateDescriptor cudnnBackendDestroyDescriptor cudnnBackendSetAttribute
cudnnBackendGetAttribute
cudnnGetBatchNormalizationForwardTrainingExWorkspaceSize
cudnnGetBatchNormalizationBackwardExWorkspaceSize
cudnnGetBatchNormalizationTrainingExReserveSpaceSize
""",
    # Batch normalisation by the plain forms' calls.
    STREAM: """
cudnnBackendExecute cudnnRNNForward cudnnRNNBackwardData_v8 cudnnRNNBackwardWeights_v8
cudnnSetDropoutDescriptor
cudnnBatchNormalizationForwardTrainingEx cudnnBatchNormalizationBackwardEx
""",
    # Once for each problem.
    SYNC: """
cudnnGetConvolutionForwardAlgorithm_v7 cudnnGetConvolutionBackwardDataAlgorithm_v7
cudnnGetConvolutionBackwardFilterAlgorithm_v7 cudnnFindConvolutionForwardAlgorithm
cudnnFindConvolutionBackwardDataAlgorithm cudnnFindConvolutionBackwardFilterAlgorithm
cudnnBackendFinalize cudnnGetRNNWeightParams cudnnGetRNNTempSpaceSizes
cudnnFindConvolutionForwardAlgorithmEx cudnnFindConvolutionBackwardDataAlgorithmEx
cudnnFindConvolutionBackwardFilterAlgorithmEx
""",
}

SYMBOLS = [
    value("cudnnGetVersion", "CUDNN_VERSION"),
    value("cudnnGetCudartVersion", "CUDART_VERSION"),
    value("cudnnGetMaxDeviceVersion", "CUDNN_MAX_DEVICE_VERSION"),
    *(value(f"cudnn{part}VersionCheck", "CUDNN_STATUS_SUCCESS")
      for part in ("Graph", "Ops", "Cnn", "Adv")),
    *(custom(name, order) for order, names in _CUSTOM.items() for name in names.split()),
]

LIBRARY = Library(name="cudnn", prefix="Cudnn", first_id=3072, last_id=4095, commands=COMMANDS,
                  structs=STRUCTS, calls=[*_TENSORS, *_LAYERS, *_SPATIAL, *_NORMALISATION,
                                           *_CONVOLUTION, *_RECURRENT],
                  functions=FUNCTIONS, symbols=SYMBOLS, soname="libcudnn.so.9",
                  headers=("cuda_runtime_api.h", "cudnn_graph.h", "cudnn_ops.h", "cudnn_cnn.h",
                           "cudnn_adv.h", "cudnn_backend.h"), api_macros=("CUDNNWINAPI",),
                  wire_headers=("nvidia/cudnn/descriptors.h", "nvidia/cudnn/graph.h",
                                "nvidia/cudnn/recurrent.h", "nvidia/cudnn/spatial.h"),
                  check_header="proto/cuda_api/cudnn_values.h")
