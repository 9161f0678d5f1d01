"""The CUDA runtime: what its calls send to an executor, and which symbols answer what.

Ids 64 to 1023. Streams, events, modules and kernels are client-minted handles; stream 0 is the
session's legacy default stream. Addresses are the client's own.
"""

from vocabulary import (
    LOCAL, STREAM, SYNC, Constant, Enumeration, Library, Struct, array, blob, command, custom,
    f32, i32, i64, local, payload, string, u8, u32, u64, value, vector)

MEMORY_SIDE = Enumeration(
    "MemorySide", "What one side of a copy of two or three dimensions names.",
    {"kDevice": "a device address", "kArena": "an address in the host arena",
     "kArray": "an array (Memcpy3D only)"})

TEXTURE_RESOURCE = Enumeration(
    "TextureResource", "What a texture reads.",
    {"kArray": "an array or one level of it", "kMipmappedArray": "all levels of an array",
     "kLinear": "device memory", "kPitched": "rows of device memory"})

KERNEL_PARAMETER = Struct(
    "KernelParameter", "One parameter of a kernel in its packed parameter buffer.",
    dict(offset=u32, bytes=u32))

KERNEL_ENTRY = Struct(
    "KernelEntry", "A kernel of a module; the numbers are those of cuFuncGetAttribute.",
    dict(name=string, parameters=vector(KERNEL_PARAMETER), max_threads=i32,
         static_shared_bytes=i32, cluster=array(i32, 3), needs_cluster=i32))

GRAPH_COMMAND = Struct(
    "GraphCommand", "A STREAM command of this or another table inside a graph; its own stream is"
    " not looked at.",
    dict(call_id=u32, fields=blob))

GRAPH_NODE = Struct(
    "GraphNode", "Commands of a graph that run one after another, after those of the nodes that"
    " `dependencies` names by their place in the graph: earlier ones.",
    dict(commands=vector(GRAPH_COMMAND), dependencies=vector(u32)))

STRUCTS = [KERNEL_PARAMETER, KERNEL_ENTRY, GRAPH_COMMAND, GRAPH_NODE]
ENUMERATIONS = [MEMORY_SIDE, TEXTURE_RESOURCE]

CONSTANTS = [
    Constant("kReplyInline", "As a window_offset: send the bytes inside the reply.", u64,
             "~std::uint64_t{0}"),
    Constant("kReplyHash", "As a window_offset: send the bytes' ResultHash instead of the bytes.",
             u64, "~std::uint64_t{0} - 1"),
    Constant("kMaxInlineBytes", "Most bytes inside one command or one reply.", u64, "16384"),
    Constant("kLaunchCooperative", "Bit of LaunchKernel::flags; launch_cluster.h tells of others.",
             u32, "1"),
]

# An event that processes share: words of the completion page of the session that created it, which
# is of the same function. One slot says which record was the latest, the other which has completed.
SHARED_EVENT = dict(owner=u64, issued_slot=u32, done_slot=u32)

COMMANDS = [
    # Streams and events. (slot, value): written to the completion page in stream order;
    # value 0 asks for none.
    command(64, "StreamCreate", STREAM, stream=u64, flags=u32, priority=i32),
    command(65, "StreamDestroy", STREAM, stream=u64),
    command(66, "StreamWaitEvent", STREAM, stream=u64, event=u64, flags=u32),
    command(67, "StreamMark", STREAM, stream=u64, slot=u32, value=u64,
            note="Writes `value` to the completion slot after all earlier work of the stream."),
    command(68, "EventCreate", STREAM, event=u64, flags=u32),
    command(69, "EventDestroy", STREAM, event=u64),
    command(70, "EventRecord", STREAM, event=u64, stream=u64, flags=u32, slot=u32, value=u64),
    command(71, "EventImport", STREAM, event=u64, completed_ns=i64,
            note="Journal: the event was complete before the session moved here."),
    # Modules and kernels.
    command(72, "ModuleUse", STREAM, module=u64, hash=array(u8, 32), variables=vector(string),
            finds_variables=u32,
            note="Journal: the node already has the module's bytes (SHA-256 of them)."
                 " `variables` and `finds_variables` as in ModuleLoad."),
    command(73, "ModuleUnload", STREAM, module=u64),
    command(74, "ModuleBindGlobals", STREAM, module=u64, address=u64,
            note="The device block that backs the module's variables, laid out as"
                 " ModuleLoadResult says."),
    command(75, "KernelCreate", STREAM, kernel=u64, module=u64, name=string),
    command(76, "FuncSetAttribute", STREAM, kernel=u64, attribute=i32, value=i32,
            note="`attribute` is a CUfunction_attribute."),
    command(77, "LaunchKernel", STREAM, kernel=u64, stream=u64, grid=array(u32, 3),
            block=array(u32, 3), shared_bytes=u32, flags=u32, parameters=blob,
            note="`parameters` is the packed buffer, laid out as the KernelEntry says."),
    # Memory. A command whose payload is kInline carries its bytes in `data`.
    command(78, "MemcpyHtoD", STREAM, dst=u64, stream=u64, bytes=u64, payload=payload, offset=u64,
            slot=u32, value=u64, data=blob),
    command(79, "MemcpyDtoHArena", STREAM, src=u64, stream=u64, bytes=u64, arena_offset=u64,
            note="Asynchronous copy to pinned memory."),
    command(80, "MemcpyDtoD", STREAM, dst=u64, src=u64, stream=u64, bytes=u64),
    command(81, "Memcpy2D", STREAM, dst=u64, dst_pitch=u64, src=u64, src_pitch=u64, width=u64,
            height=u64, stream=u64, dst_side=MEMORY_SIDE, src_side=MEMORY_SIDE,
            note="Between device memory and pinned memory, any direction; widths in bytes."),
    command(82, "Memset", STREAM, dst=u64, stream=u64, value=u32, element_bytes=u32, count=u64,
            note="`element_bytes` is 1, 2 or 4; `count` is in elements."),
    command(83, "Memset2D", STREAM, dst=u64, pitch=u64, value=u32, element_bytes=u32, width=u64,
            height=u64, stream=u64,
            note="`element_bytes` is 1, 2 or 4; `width` is in elements, `pitch` in bytes."),
    command(84, "MemcpyToSymbol", STREAM, module=u64, variable=string, variable_offset=u64,
            stream=u64, bytes=u64, payload=payload, offset=u64, slot=u32, value=u64, data=blob,
            device_source=u64,
            note="From device memory where `device_source` is not 0, else from the payload."),
    command(85, "DeviceSetLimit", STREAM, limit=u32, value=u64, note="`limit` is a cudaLimit."),
    command(86, "SymbolPublish", STREAM, module=u64, variable=string, address=u64,
            note="Journal: by which address the client knows the variable, on whatever GPU."),
    command(87, "StreamWaitMark", STREAM, stream=u64, session=u64, slot=u32, value=u64,
            note="Later work of the stream waits until the slot of another session of the process"
                 " has come to `value`."),
    command(88, "StreamFence", STREAM, stream=u64,
            note="What follows, in any stream, begins when all earlier work of this one is done."),
    # Events among processes. They are answered, so that a process may tell another of its record as
    # soon as the call has returned.
    command(140, "SharedEventRecord", SYNC, **SHARED_EVENT, stream=u64),
    command(141, "SharedEventWait", SYNC, **SHARED_EVENT, stream=u64,
            note="Later work of the stream waits for the latest record."),
    command(142, "SharedEventQuery", SYNC, **SHARED_EVENT, returns=dict(is_complete=u32)),
    # Arrays, textures and surfaces: 160 to 199. `format` is a CUarray_format. A level is 0 for
    # arrays that are not mipmapped.
    command(160, "ArrayCreate", STREAM, array=u64, width=u64, height=u64, depth=u64, format=u32,
            channels=u32, flags=u32, levels=u32, block=u64,
            note="`levels` 0: not mipmapped. `flags` are CUDA_ARRAY3D_*. `block` is device memory"
                 " that holds the texels while the session is elsewhere: the levels one after"
                 " another, with rows and slices packed."),
    command(161, "ArrayDestroy", STREAM, array=u64),
    command(162, "Memcpy3D", STREAM, dst_side=MEMORY_SIDE, dst=u64, dst_level=u32,
            dst_position=array(u64, 3), dst_pitch=u64, dst_rows=u64, src_side=MEMORY_SIDE,
            src=u64, src_level=u32, src_position=array(u64, 3), src_pitch=u64, src_rows=u64,
            width=u64, height=u64, depth=u64, stream=u64,
            note="Between arrays, device memory and pinned memory. A side is an address with pitch"
                 " and rows a slice, or an array's id with level and position; widths and the"
                 " position's first number are in bytes."),
    command(163, "TextureCreate", STREAM, texture=u64, resource=TEXTURE_RESOURCE, source=u64,
            level=u32, format=u32, channels=u32, width=u64, height=u64, pitch=u64,
            address_modes=array(u32, 3), filter=u32, flags=u32, max_anisotropy=u32,
            level_filter=u32, level_bias=f32, min_level=f32, max_level=f32, border=array(f32, 4),
            has_view=u32, view_format=u32, view_extent=array(u64, 3), view_levels=array(u32, 2),
            view_layers=array(u32, 2),
            note="`source` is an array's id or an address; `width` is in texels, of kLinear in bytes. The"
                 " rest is as in CUDA_TEXTURE_DESC and CUDA_RESOURCE_VIEW_DESC. How it went:"
                 " ImageObjectValue."),
    command(164, "SurfaceCreate", STREAM, surface=u64, array=u64, level=u32,
            note="How it went: ImageObjectValue."),
    command(165, "ImageObjectDestroy", STREAM, object=u64, note="A texture or surface."),
    command(166, "ImageObjectPublish", STREAM, object=u64, known_as=u64,
            note="Journal: by which value the program knows the texture or surface, on whatever"
                 " GPU."),
    command(176, "ArrayCheck", SYNC, array=u64, note="Fails if the array could not be created."),
    command(177, "ImageObjectValue", SYNC, object=u64, returns=dict(known_as=u64),
            note="The driver's CUtexObject or CUsurfObject on this GPU."),
    # Graphs: commands that are sent once and launched often (200 to 239).
    command(200, "GraphCreate", STREAM, graph=u64),
    command(201, "GraphAddNodes", STREAM, graph=u64, first=u32, nodes=vector(GRAPH_NODE),
            note="`first` is the place of the first of them: how many the graph has."),
    command(202, "GraphSetNode", STREAM, graph=u64, node=u32, commands=vector(GRAPH_COMMAND),
            note="What the node does from the next launch on."),
    command(203, "GraphDestroy", STREAM, graph=u64),
    command(204, "GraphLaunch", STREAM, graph=u64, stream=u64,
            note="After all earlier work of the stream and the graph's earlier launches."),
    # Answered.
    command(128, "StreamSynchronize", SYNC, stream=u64),
    command(129, "EventSynchronize", SYNC, event=u64),
    command(130, "EventElapsedTime", SYNC, start=u64, end=u64, returns=dict(milliseconds=f32)),
    command(131, "DeviceSynchronize", SYNC),
    command(132, "ModuleLoad", SYNC, module=u64, hash=array(u8, 32), variables=vector(string),
            finds_variables=u32,
            returns=dict(found=u32, kernels=vector(KERNEL_ENTRY), globals_bytes=u64),
            note="found 0: the node lacks the bytes, send them with ModuleUpload and load again."
                 " `variables` names what the program registered (__cudaRegisterVar): the driver"
                 " cannot enumerate a module's variables. `finds_variables` 1: nothing has"
                 " registered them, the executor is to look for them in the module."),
    command(133, "ModuleUpload", SYNC, hash=array(u8, 32), total_bytes=u64, at=u64,
            payload=payload, offset=u64, bytes=u64, data=blob,
            note="The piece [at, at + bytes) of a module as cuModuleLoadData takes it, or of a"
                 " RelocatableModule; pieces come in order."),
    command(134, "MemcpyDtoH", SYNC, src=u64, stream=u64, bytes=u64, window_offset=u64,
            returns=dict(data=blob),
            note="Into the window, or with kReplyInline into the reply, or nowhere with kReplyHash."),
    command(135, "MemcpyFromSymbol", SYNC, module=u64, variable=string, variable_offset=u64,
            stream=u64, bytes=u64, window_offset=u64, returns=dict(data=blob)),
    command(136, "SymbolAddress", SYNC, module=u64, variable=string,
            returns=dict(address=u64, bytes=u64)),
    command(137, "FuncGetAttributes", SYNC, kernel=u64, returns=dict(values=vector(i32)),
            note="`values` is indexed by CUfunction_attribute."),
    command(138, "OccupancyMaxActiveBlocks", SYNC, kernel=u64, block_size=i32, dynamic_shared=u64,
            flags=u32, returns=dict(blocks=i32)),
    command(144, "OccupancyClusters", SYNC, kernel=u64, grid=array(u32, 3), block=array(u32, 3),
            shared_bytes=u32, flags=u32, largest=u32, returns=dict(count=i32),
            note="The clusters of such a launch that fit the GPU at once; `largest` not 0: the blocks"
                 " of the largest cluster."),
    command(139, "DeviceGetLimit", SYNC, limit=u32, returns=dict(value=u64)),
]

# Whose C entries are hand-written in client_shim/cudart/, by what a call costs: LOCAL ones never
# leave the client, STREAM ones are batched, SYNC ones wait for an executor or for torpord (memory).
# Per-thread variants (_ptsz, _ptds) are generated where the function has a stream parameter; the
# others are hand-written too.
_CUSTOM = {
    LOCAL: """
cudaGetDeviceCount cudaGetDevice cudaSetDevice cudaGetDeviceProperties cudaDeviceGetAttribute
cudaDeviceGetStreamPriorityRange cudaDeviceCanAccessPeer cudaDeviceGetP2PAttribute
cudaDeviceEnablePeerAccess
cudaDeviceDisablePeerAccess cudaDeviceGetPCIBusId cudaDeviceGetByPCIBusId cudaSetDeviceFlags
cudaGetDeviceFlags cudaChooseDevice cudaSetValidDevices cudaInitDevice cudaDriverGetVersion
cudaGetDriverEntryPoint cudaGetDriverEntryPointByVersion
cudaGetLastError cudaPeekAtLastError cudaGetErrorName cudaGetErrorString
cudaStreamQuery cudaStreamGetFlags cudaStreamGetPriority cudaStreamGetDevice cudaStreamGetId
cudaStreamSetAttribute cudaStreamGetAttribute cudaStreamCopyAttributes
cudaEventQuery cudaIpcGetEventHandle
cudaHostGetDevicePointer cudaHostGetFlags
cudaStreamBeginCapture cudaStreamBeginCaptureToGraph cudaStreamEndCapture cudaStreamIsCapturing
cudaStreamGetCaptureInfo cudaStreamUpdateCaptureDependencies cudaThreadExchangeStreamCaptureMode
cudaGraphCreate cudaGraphDestroy cudaGraphClone cudaGraphNodeFindInClone cudaGraphGetNodes
cudaGraphGetRootNodes cudaGraphGetEdges cudaGraphNodeGetDependencies cudaGraphNodeGetDependentNodes
cudaGraphAddDependencies cudaGraphRemoveDependencies cudaGraphDebugDotPrint
cudaGraphAddNode cudaGraphNodeSetParams cudaGraphDestroyNode cudaGraphNodeGetType
cudaGraphAddEmptyNode cudaGraphAddChildGraphNode cudaGraphChildGraphNodeGetGraph
cudaGraphAddKernelNode cudaGraphKernelNodeGetParams cudaGraphKernelNodeSetParams
cudaGraphKernelNodeSetAttribute cudaGraphKernelNodeGetAttribute cudaGraphKernelNodeCopyAttributes
cudaGraphAddMemcpyNode cudaGraphMemcpyNodeGetParams cudaGraphMemcpyNodeSetParams
cudaGraphAddMemcpyNode1D cudaGraphMemcpyNodeSetParams1D
cudaGraphAddMemcpyNodeToSymbol cudaGraphMemcpyNodeSetParamsToSymbol
cudaGraphAddMemcpyNodeFromSymbol cudaGraphMemcpyNodeSetParamsFromSymbol
cudaGraphAddMemsetNode cudaGraphMemsetNodeGetParams cudaGraphMemsetNodeSetParams
cudaGraphAddHostNode cudaGraphHostNodeGetParams cudaGraphHostNodeSetParams
cudaGraphAddEventRecordNode cudaGraphEventRecordNodeGetEvent cudaGraphEventRecordNodeSetEvent
cudaGraphAddEventWaitNode cudaGraphEventWaitNodeGetEvent cudaGraphEventWaitNodeSetEvent
cudaGraphMemAllocNodeGetParams cudaGraphMemFreeNodeGetParams cudaGraphAddMemFreeNode
cudaDeviceGetGraphMemAttribute cudaDeviceSetGraphMemAttribute cudaDeviceGraphMemTrim
cudaGraphExecGetFlags cudaGraphNodeGetEnabled cudaGraphUpload
cudaUserObjectCreate cudaUserObjectRetain cudaUserObjectRelease cudaGraphRetainUserObject
cudaGraphReleaseUserObject
cudaHostRegister cudaHostUnregister cudaPointerGetAttributes cudaGetKernel cudaFuncGetName
cudaArrayGetInfo cudaGetChannelDesc cudaGetMipmappedArrayLevel cudaGetTextureObjectResourceDesc
cudaGetTextureObjectTextureDesc cudaGetTextureObjectResourceViewDesc
cudaGetSurfaceObjectResourceDesc cudaDeviceGetTexture1DLinearMaxWidth
cudaDeviceGetDefaultMemPool cudaDeviceGetMemPool cudaDeviceSetMemPool cudaMemGetDefaultMemPool
cudaMemGetMemPool cudaMemSetMemPool cudaMemPoolCreate cudaMemPoolDestroy cudaMemPoolSetAttribute
cudaMemPoolGetAttribute cudaMemPoolSetAccess cudaMemPoolGetAccess
cudaMemAdvise cudaMemPrefetchAsync cudaMemPrefetchBatchAsync cudaMemDiscardBatchAsync
cudaMemDiscardAndPrefetchBatchAsync cudaMemRangeGetAttribute cudaMemRangeGetAttributes
cudaStreamAttachMemAsync
cudaLibraryGetKernelCount cudaLibraryEnumerateKernels cudaLibraryGetKernel cudaFuncGetParamInfo
""",
    STREAM: """
cudaStreamCreate cudaStreamCreateWithFlags cudaStreamCreateWithPriority cudaStreamDestroy
cudaStreamWaitEvent cudaStreamAddCallback cudaLaunchHostFunc
cudaEventCreate cudaEventCreateWithFlags cudaEventDestroy cudaEventRecord cudaEventRecordWithFlags
cudaMemcpyAsync cudaMemcpy2DAsync cudaMemcpyPeer cudaMemcpyPeerAsync cudaMemcpyToSymbol
cudaMemcpyToSymbolAsync cudaMemset cudaMemsetAsync cudaMemset2D cudaMemset2DAsync
cudaMemset3D cudaMemset3DAsync cudaMemcpy3DAsync cudaMemcpy3DPeerAsync
cudaMemcpy2DToArrayAsync cudaMemcpy2DFromArrayAsync cudaMemcpy2DArrayToArray
cudaMemcpyToArrayAsync cudaMemcpyFromArrayAsync cudaMemcpyArrayToArray
cudaDestroyTextureObject cudaDestroySurfaceObject
cudaMemcpyBatchAsync
cudaFuncSetAttribute cudaKernelSetAttributeForDevice cudaDeviceSetLimit cudaLibraryUnload
cudaLaunchKernel cudaLaunchKernelExC cudaLaunchCooperativeKernel
cudaGraphInstantiate cudaGraphInstantiateWithFlags cudaGraphInstantiateWithParams
cudaGraphLaunch cudaGraphExecUpdate cudaGraphNodeSetEnabled cudaGraphExecDestroy
cudaGraphExecNodeSetParams cudaGraphExecChildGraphNodeSetParams cudaGraphExecKernelNodeSetParams
cudaGraphExecMemcpyNodeSetParams cudaGraphExecMemcpyNodeSetParams1D
cudaGraphExecMemcpyNodeSetParamsToSymbol cudaGraphExecMemcpyNodeSetParamsFromSymbol
cudaGraphExecMemsetNodeSetParams cudaGraphExecHostNodeSetParams
cudaGraphExecEventRecordNodeSetEvent cudaGraphExecEventWaitNodeSetEvent
cudaMallocAsync cudaMallocFromPoolAsync cudaFreeAsync
""",
    SYNC: """
cudaDeviceSynchronize cudaDeviceReset cudaDeviceGetLimit cudaStreamSynchronize
cudaEventSynchronize cudaEventElapsedTime
cudaIpcGetMemHandle cudaIpcOpenMemHandle cudaIpcCloseMemHandle cudaIpcOpenEventHandle
cudaGraphAddMemAllocNode
cudaMalloc cudaFree cudaMallocPitch cudaMallocManaged cudaMemGetInfo cudaMemPoolTrimTo
cudaMallocHost cudaFreeHost cudaHostAlloc cudaMalloc3D
cudaMallocArray cudaMalloc3DArray cudaFreeArray cudaMallocMipmappedArray cudaFreeMipmappedArray
cudaMemcpy2DToArray cudaMemcpy2DFromArray cudaMemcpyToArray cudaMemcpyFromArray
cudaMemcpy3D cudaMemcpy3DPeer cudaCreateTextureObject cudaCreateSurfaceObject
cudaMemcpy cudaMemcpy2D cudaMemcpyFromSymbol cudaMemcpyFromSymbolAsync
cudaGetSymbolAddress cudaGetSymbolSize cudaFuncGetAttributes
cudaLibraryLoadData cudaLibraryLoadFromFile cudaLibraryGetGlobal
cudaOccupancyMaxActiveBlocksPerMultiprocessor cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags
cudaOccupancyAvailableDynamicSMemPerBlock cudaOccupancyMaxActiveClusters
cudaOccupancyMaxPotentialClusterSize
""",
}

SYMBOLS = [custom(name, order) for order, names in _CUSTOM.items() for name in names.split()]
SYMBOLS += [
    # What nvcc's host code calls; no public header declares these.
    custom("__cudaRegisterFatBinary", LOCAL, "void ** (void * fat_binary)"),
    custom("__cudaRegisterFatBinaryEnd", LOCAL, "void (void ** handle)"),
    custom("__cudaUnregisterFatBinary", LOCAL, "void (void ** handle)"),
    custom("__cudaRegisterFunction", LOCAL,
           "void (void ** handle, const char * host_function, char * device_function,"
           " const char * device_name, int thread_limit, uint3 * thread_id, uint3 * block_id,"
           " dim3 * block_dim, dim3 * grid_dim, int * warp_size)"),
    custom("__cudaRegisterVar", LOCAL,
           "void (void ** handle, char * host_variable, char * device_address,"
           " const char * device_name, int is_external, size_t bytes, int is_constant,"
           " int is_global)"),
    custom("__cudaRegisterManagedVar", LOCAL,
           "void (void ** handle, void ** host_variable, char * device_address,"
           " const char * device_name, int is_external, size_t bytes, int is_constant,"
           " int is_global)"),
    custom("__cudaInitModule", LOCAL, "char (void ** handle)"),
    custom("__cudaPushCallConfiguration", LOCAL,
           "unsigned (dim3 grid, dim3 block, size_t shared_bytes, struct CUstream_st * stream)"),
    custom("__cudaPopCallConfiguration", LOCAL,
           "cudaError_t (dim3 * grid, dim3 * block, size_t * shared_bytes, void * stream)"),
    custom("__cudaGetKernel", LOCAL,
           "cudaError_t (cudaKernel_t * kernel, const void * host_function)"),
    custom("__cudaLaunchKernel", STREAM,
           "cudaError_t (cudaKernel_t kernel, dim3 grid, dim3 block, void ** arguments,"
           " size_t shared_bytes, cudaStream_t stream)"),
    # Constant answers. Cache preferences are only hints.
    local("cudaRuntimeGetVersion", runtimeVersion="CUDART_VERSION"),
    local("cudaProfilerStart", "cudaError_t (void)"),
    local("cudaProfilerStop", "cudaError_t (void)"),
    local("cudaDeviceSetCacheConfig"),
    local("cudaDeviceGetCacheConfig", pCacheConfig="cudaFuncCachePreferNone"),
    local("cudaFuncSetCacheConfig"),
    local("cudaDeviceSetSharedMemConfig"),
    local("cudaDeviceGetSharedMemConfig", pConfig="cudaSharedMemBankSizeFourByte"),
    local("cudaFuncSetSharedMemConfig"),
    local("cudaCtxResetPersistingL2Cache"),
    value("cudaCreateChannelDesc", "{x, y, z, w, f}"),
]

# The server carries out each subject's commands in a class of its own.
SUBJECTS = {
    "Stream": "StreamCreate StreamDestroy StreamWaitEvent StreamMark StreamFence StreamSynchronize"
              " DeviceSynchronize",
    "Event": "EventCreate EventDestroy EventRecord EventImport EventSynchronize EventElapsedTime",
    "SharedEvent": "StreamWaitMark SharedEventRecord SharedEventWait SharedEventQuery",
    "Limit": "DeviceSetLimit DeviceGetLimit",
    "Module": "ModuleUse ModuleLoad ModuleUpload ModuleUnload ModuleBindGlobals KernelCreate"
              " FuncSetAttribute FuncGetAttributes OccupancyMaxActiveBlocks OccupancyClusters",
    "Launch": "LaunchKernel",
    "Symbol": "SymbolPublish SymbolAddress MemcpyToSymbol MemcpyFromSymbol",
    "Memory": "MemcpyHtoD MemcpyDtoH MemcpyDtoHArena MemcpyDtoD Memcpy2D Memset Memset2D",
    "Array": "ArrayCreate ArrayDestroy ArrayCheck Memcpy3D",
    "Texture": "TextureCreate SurfaceCreate ImageObjectDestroy ImageObjectPublish"
               " ImageObjectValue",
    "Graph": "GraphCreate GraphAddNodes GraphSetNode GraphDestroy GraphLaunch",
}

LIBRARY = Library(name="cudart", prefix="Cudart", first_id=64, last_id=1023, commands=COMMANDS,
                  constants=CONSTANTS, enumerations=ENUMERATIONS, structs=STRUCTS,
                  subjects=SUBJECTS, symbols=SYMBOLS, soname="libcudart.so.13",
                  private_exports={"TORPOR_CUDART_1": "torpor_driver_seam"},
                  headers=("cuda_runtime_api.h",), api_macros=("CUDARTAPI",), success="cudaSuccess")
