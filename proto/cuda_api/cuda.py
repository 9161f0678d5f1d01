"""The CUDA driver API: libcuda.so.1, told in the words of the runtime.

No commands of its own cross the wire (ids 280 to 319 are kept for them). Expressions
call the runtime's functions or those of client_shim/cuda/calls.h. A name without a version is the
oldest form; where the header no longer declares it, few programs have it.
"""

from vocabulary import Library, Needs, translated

_ANYTIME = [
    translated("cuInit", "Initialize(Flags)", Needs.NOTHING),
    translated("cuDriverGetVersion", "cudaDriverGetVersion(driverVersion)", Needs.NOTHING),
    translated("cuGetErrorName", "GetErrorName(error, pStr)", Needs.NOTHING),
    translated("cuGetErrorString", "GetErrorString(error, pStr)", Needs.NOTHING),
    translated("cuGetProcAddress",
               "GetProcAddress(symbol, pfn, cudaVersion, flags, nullptr, false)", Needs.NOTHING,
               "CUresult (const char * symbol, void ** pfn, int cudaVersion, cuuint64_t flags)"),
    translated("cuGetProcAddress_v2",
               "GetProcAddress(symbol, pfn, cudaVersion, flags, symbolStatus,"
               " {stream} == cudaStreamPerThread)", Needs.NOTHING),
    translated("cuGetExportTable", "GetExportTable(ppExportTable, pExportTableId)",
               Needs.NOTHING),
    translated("cuProfilerStart", "CUDA_SUCCESS", Needs.CONTEXT),
    translated("cuProfilerStop", "CUDA_SUCCESS", Needs.CONTEXT),
]

_DEVICES = {
    "cuDeviceGet": "GetDevice(device, ordinal)",
    "cuDeviceGetCount": "GetDeviceCount(count)",
    "cuDeviceGetName": "GetDeviceName(name, len, dev)",
    "cuDeviceGetUuid_v2": "GetDeviceUuid(uuid, dev)",
    "cuDeviceTotalMem_v2": "GetDeviceMemory(bytes, dev)",
    "cuDeviceGetAttribute": "GetDeviceAttribute(pi, attrib, dev)",
    "cuDeviceComputeCapability": "GetComputeCapability(major, minor, dev)",
    "cuDeviceGetByPCIBusId": "cudaDeviceGetByPCIBusId(dev, pciBusId)",
    "cuDeviceGetPCIBusId": "cudaDeviceGetPCIBusId(pciBusId, len, dev)",
    "cuDeviceCanAccessPeer": "cudaDeviceCanAccessPeer(canAccessPeer, dev, peerDev)",
    "cuDeviceGetP2PAttribute":
        "cudaDeviceGetP2PAttribute(value, static_cast<cudaDeviceP2PAttr>(attrib), srcDevice,"
        " dstDevice)",
    "cuDevicePrimaryCtxRetain": "RetainPrimary(pctx, dev)",
    "cuDevicePrimaryCtxRelease_v2": "ReleasePrimary(dev)",
    "cuDevicePrimaryCtxSetFlags_v2": "SetPrimaryFlags(dev, flags)",
    "cuDevicePrimaryCtxGetState": "GetPrimaryState(dev, flags, active)",
    "cuDevicePrimaryCtxReset_v2": "ResetPrimary(dev)",
    "cuCtxCreate_v2": "CreateContext(pctx, flags, dev)",
    "cuCtxCreate_v3":
        "numParams == 0 ? CreateContext(pctx, flags, dev) : Refuse(\"execution affinity\")",
    "cuCtxCreate_v4":
        "IsPlain(ctxCreateParams) ? CreateContext(pctx, flags, dev)"
        " : Refuse(\"a context with parameters\")",
    "cuCtxDestroy_v2": "DestroyContext(ctx)",
    "cuCtxPushCurrent_v2": "PushContext(ctx)",
    "cuCtxPopCurrent_v2": "PopContext(pctx)",
    "cuCtxSetCurrent": "SetContext(ctx)",
    "cuCtxGetCurrent": "GetContext(pctx)",
    "cuCtxGetDevice_v2": "GetContextDevice(device, ctx)",
    "cuCtxGetId": "GetContextId(ctx, ctxId)",
    "cuCtxGetApiVersion": "GetContextVersion(ctx, version)",
    "cuModuleGetLoadingMode": "GetLoadingMode(mode)",
    "cuMemGetAllocationGranularity": "GetGranularity(granularity, prop, option)",
}

_CONTEXTS = {
    "cuCtxGetDevice": "GetContextDevice(device, nullptr)",
    "cuCtxGetFlags": "GetContextFlags(flags)",
    "cuCtxSetFlags": "SetContextFlags(flags)",
    "cuCtxSynchronize": "cudaDeviceSynchronize()",
    "cuCtxSynchronize_v2": "cudaDeviceSynchronize()",
    "cuCtxSetLimit": "cudaDeviceSetLimit(static_cast<cudaLimit>(limit), value)",
    "cuCtxGetLimit": "cudaDeviceGetLimit(pvalue, static_cast<cudaLimit>(limit))",
    "cuCtxGetCacheConfig":
        "cudaDeviceGetCacheConfig(reinterpret_cast<cudaFuncCache*>(pconfig))",
    "cuCtxSetCacheConfig": "cudaDeviceSetCacheConfig(static_cast<cudaFuncCache>(config))",
    "cuCtxGetSharedMemConfig":
        "cudaDeviceGetSharedMemConfig(reinterpret_cast<cudaSharedMemConfig*>(pConfig))",
    "cuCtxSetSharedMemConfig":
        "cudaDeviceSetSharedMemConfig(static_cast<cudaSharedMemConfig>(config))",
    "cuCtxGetStreamPriorityRange":
        "cudaDeviceGetStreamPriorityRange(leastPriority, greatestPriority)",
    "cuCtxResetPersistingL2Cache": "cudaCtxResetPersistingL2Cache()",
    "cuCtxEnablePeerAccess": "EnablePeer(peerContext, Flags)",
    "cuCtxDisablePeerAccess": "DisablePeer(peerContext)",
}

_MODULES = {
    "cuModuleLoad": "LoadModuleFile(module, fname)",
    "cuModuleLoadData": "LoadModuleData(module, image, 0, nullptr, nullptr)",
    "cuModuleLoadDataEx": "LoadModuleData(module, image, numOptions, options, optionValues)",
    "cuModuleLoadFatBinary": "LoadModuleData(module, fatCubin, 0, nullptr, nullptr)",
    "cuModuleUnload": "cudaLibraryUnload(AsLibrary(hmod))",
    "cuModuleGetFunction": "GetModuleFunction(hfunc, AsLibrary(hmod), name)",
    "cuModuleGetFunctionCount": "cudaLibraryGetKernelCount(count, AsLibrary(mod))",
    "cuModuleEnumerateFunctions":
        "cudaLibraryEnumerateKernels(AsKernels(functions), numFunctions, AsLibrary(mod))",
    "cuModuleGetGlobal_v2": "GetGlobal(dptr, bytes, AsLibrary(hmod), name)",
    "cuLibraryLoadData":
        "cudaLibraryLoadData(library, code, AsRuntime(jitOptions), jitOptionsValues,"
        " numJitOptions, nullptr, nullptr, 0)",
    "cuLibraryLoadFromFile":
        "cudaLibraryLoadFromFile(library, fileName, AsRuntime(jitOptions), jitOptionsValues,"
        " numJitOptions, nullptr, nullptr, 0)",
    "cuLibraryUnload": "cudaLibraryUnload(library)",
    "cuLibraryGetKernel": "cudaLibraryGetKernel(pKernel, library, name)",
    "cuLibraryGetKernelCount": "cudaLibraryGetKernelCount(count, lib)",
    "cuLibraryEnumerateKernels": "cudaLibraryEnumerateKernels(kernels, numKernels, lib)",
    "cuLibraryGetModule": "GetModule(pMod, library)",
    "cuLibraryGetGlobal": "GetGlobal(dptr, bytes, library, name)",
    "cuKernelGetFunction": "GetFunction(pFunc, kernel)",
    "cuKernelGetLibrary": "GetLibrary(pLib, kernel)",
    "cuKernelGetName": "cudaFuncGetName(name, hfunc)",
    "cuKernelGetParamInfo": "cudaFuncGetParamInfo(kernel, paramIndex, paramOffset, paramSize)",
    "cuKernelGetAttribute": "GetFunctionAttribute(pi, attrib, kernel)",
    "cuKernelSetAttribute":
        "cudaFuncSetAttribute(kernel, static_cast<cudaFuncAttribute>(attrib), val)",
    "cuKernelSetCacheConfig":
        "cudaFuncSetCacheConfig(kernel, static_cast<cudaFuncCache>(config))",
    "cuFuncGetAttribute": "GetFunctionAttribute(pi, attrib, hfunc)",
    "cuFuncSetAttribute":
        "cudaFuncSetAttribute(hfunc, static_cast<cudaFuncAttribute>(attrib), value)",
    "cuFuncSetCacheConfig": "cudaFuncSetCacheConfig(hfunc, static_cast<cudaFuncCache>(config))",
    "cuFuncSetSharedMemConfig":
        "cudaFuncSetSharedMemConfig(hfunc, static_cast<cudaSharedMemConfig>(config))",
    "cuFuncGetModule": "GetModuleOf(hmod, hfunc)",
    "cuFuncGetName": "GetFunctionName(name, hfunc)",
    "cuFuncGetParamInfo": "GetParameter(func, paramIndex, paramOffset, paramSize)",
    "cuFuncIsLoaded": "GetLoadingState(state, function)",
    "cuFuncLoad": "LoadFunction(function)",
    "cuLinkCreate_v2": "CreateLink(numOptions, options, optionValues, stateOut)",
    "cuLinkAddData_v2": "AddLinkData(state, type, data, size)",
    "cuLinkAddFile_v2": "AddLinkFile(state, type, path)",
    "cuLinkComplete": "CompleteLink(state, cubinOut, sizeOut)",
    "cuLinkDestroy": "DestroyLink(state)",
    "cuOccupancyMaxActiveBlocksPerMultiprocessor":
        "cudaOccupancyMaxActiveBlocksPerMultiprocessor(numBlocks, func, blockSize,"
        " dynamicSMemSize)",
    "cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags":
        "cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(numBlocks, func, blockSize,"
        " dynamicSMemSize, flags)",
    "cuOccupancyMaxPotentialBlockSize":
        "FindBlockSize(minGridSize, blockSize, func, blockSizeToDynamicSMemSize,"
        " dynamicSMemSize, blockSizeLimit, 0)",
    "cuOccupancyMaxPotentialBlockSizeWithFlags":
        "FindBlockSize(minGridSize, blockSize, func, blockSizeToDynamicSMemSize,"
        " dynamicSMemSize, blockSizeLimit, flags)",
    "cuOccupancyAvailableDynamicSMemPerBlock":
        "FindSharedMemory(dynamicSmemSize, func, numBlocks, blockSize)",
    "cuOccupancyMaxActiveClusters": "GetActiveClusters(numClusters, func, config)",
    "cuOccupancyMaxPotentialClusterSize": "GetLargestCluster(clusterSize, func, config)",
}

_LAUNCHES = {
    "cuLaunchKernel":
        "Launch(f, {dim3(gridDimX, gridDimY, gridDimZ), dim3(blockDimX, blockDimY, blockDimZ),"
        " sharedMemBytes, hStream, false}, kernelParams, extra)",
    "cuLaunchCooperativeKernel":
        "Launch(f, {dim3(gridDimX, gridDimY, gridDimZ), dim3(blockDimX, blockDimY, blockDimZ),"
        " sharedMemBytes, hStream, true}, kernelParams, nullptr)",
    "cuLaunchKernelEx": "LaunchExtended(config, f, kernelParams, extra, {stream})",
    "cuLaunchHostFunc": "cudaLaunchHostFunc(hStream, fn, userData)",
}

_MEMORY = {
    "cuMemGetInfo_v2": "cudaMemGetInfo(free, total)",
    "cuMemAlloc_v2": "cudaMalloc(AsPointers(dptr), bytesize)",
    "cuMemAllocPitch_v2": "cudaMallocPitch(AsPointers(dptr), pPitch, WidthInBytes, Height)",
    "cuMemFree_v2": "cudaFree(At(dptr))",
    "cuMemGetAddressRange_v2": "GetAddressRange(pbase, psize, dptr)",
    "cuMemAllocHost_v2": "cudaMallocHost(pp, bytesize)",
    "cuMemFreeHost": "cudaFreeHost(p)",
    "cuMemHostAlloc": "cudaHostAlloc(pp, bytesize, Flags)",
    "cuMemHostGetDevicePointer_v2": "cudaHostGetDevicePointer(AsPointers(pdptr), p, Flags)",
    "cuMemHostGetFlags": "cudaHostGetFlags(pFlags, p)",
    "cuMemHostRegister_v2": "cudaHostRegister(p, bytesize, Flags)",
    "cuMemHostUnregister": "cudaHostUnregister(p)",
    "cuMemAllocAsync": "cudaMallocAsync(AsPointers(dptr), bytesize, hStream)",
    "cuMemFreeAsync": "cudaFreeAsync(At(dptr), hStream)",
    "cuIpcGetMemHandle":
        "cudaIpcGetMemHandle(reinterpret_cast<cudaIpcMemHandle_t*>(pHandle), At(dptr))",
    "cuIpcOpenMemHandle_v2":
        "cudaIpcOpenMemHandle(AsPointers(pdptr), std::bit_cast<cudaIpcMemHandle_t>(handle),"
        " Flags)",
    "cuIpcCloseMemHandle": "cudaIpcCloseMemHandle(At(dptr))",
    "cuPointerGetAttribute": "GetPointerAttribute(data, attribute, ptr)",
    "cuPointerGetAttributes": "GetPointerAttributes(numAttributes, attributes, data, ptr)",
    "cuMemcpy": "cudaMemcpy{ptds}(At(dst), At(src), ByteCount, cudaMemcpyDefault)",
    "cuMemcpyAsync": "cudaMemcpyAsync(At(dst), At(src), ByteCount, cudaMemcpyDefault, hStream)",
    "cuMemcpyHtoD_v2":
        "cudaMemcpy{ptds}(At(dstDevice), srcHost, ByteCount, cudaMemcpyHostToDevice)",
    "cuMemcpyDtoH_v2":
        "cudaMemcpy{ptds}(dstHost, At(srcDevice), ByteCount, cudaMemcpyDeviceToHost)",
    "cuMemcpyDtoD_v2":
        "cudaMemcpy{ptds}(At(dstDevice), At(srcDevice), ByteCount, cudaMemcpyDeviceToDevice)",
    "cuMemcpyHtoDAsync_v2":
        "cudaMemcpyAsync(At(dstDevice), srcHost, ByteCount, cudaMemcpyHostToDevice, hStream)",
    "cuMemcpyDtoHAsync_v2":
        "cudaMemcpyAsync(dstHost, At(srcDevice), ByteCount, cudaMemcpyDeviceToHost, hStream)",
    "cuMemcpyDtoDAsync_v2":
        "cudaMemcpyAsync(At(dstDevice), At(srcDevice), ByteCount, cudaMemcpyDeviceToDevice,"
        " hStream)",
    "cuMemcpyPeer":
        "cudaMemcpy{ptds}(At(dstDevice), At(srcDevice), ByteCount, cudaMemcpyDefault)",
    "cuMemcpyPeerAsync":
        "cudaMemcpyAsync(At(dstDevice), At(srcDevice), ByteCount, cudaMemcpyDefault, hStream)",
    "cuMemcpy2D_v2": "CopyRectangle(pCopy, {stream}, CopyWait::kYes)",
    "cuMemcpy2DUnaligned_v2": "CopyRectangle(pCopy, {stream}, CopyWait::kYes)",
    "cuMemcpy2DAsync_v2": "CopyRectangle(pCopy, hStream, CopyWait::kNo)",
    "cuMemcpy3D_v2": "CopyBox(pCopy, {stream}, CopyWait::kYes)",
    "cuMemcpy3DAsync_v2": "CopyBox(pCopy, hStream, CopyWait::kNo)",
    "cuMemsetD8_v2": "SetElements(dstDevice, uc, 1, N, {stream})",
    "cuMemsetD16_v2": "SetElements(dstDevice, us, 2, N, {stream})",
    "cuMemsetD32_v2": "SetElements(dstDevice, ui, 4, N, {stream})",
    "cuMemsetD8Async": "SetElements(dstDevice, uc, 1, N, hStream)",
    "cuMemsetD16Async": "SetElements(dstDevice, us, 2, N, hStream)",
    "cuMemsetD32Async": "SetElements(dstDevice, ui, 4, N, hStream)",
    "cuMemsetD2D8_v2": "SetRows(dstDevice, dstPitch, uc, 1, Width, Height, {stream})",
    "cuMemsetD2D16_v2": "SetRows(dstDevice, dstPitch, us, 2, Width, Height, {stream})",
    "cuMemsetD2D32_v2": "SetRows(dstDevice, dstPitch, ui, 4, Width, Height, {stream})",
    "cuMemsetD2D8Async": "SetRows(dstDevice, dstPitch, uc, 1, Width, Height, hStream)",
    "cuMemsetD2D16Async": "SetRows(dstDevice, dstPitch, us, 2, Width, Height, hStream)",
    "cuMemsetD2D32Async": "SetRows(dstDevice, dstPitch, ui, 4, Width, Height, hStream)",
    "cuMemAddressReserve": "ReserveAddresses(ptr, size, alignment, addr, flags)",
    "cuMemAddressFree": "FreeAddresses(ptr, size)",
    "cuMemCreate": "CreatePhysical(handle, size, prop, flags)",
    "cuMemRelease": "ReleasePhysical(handle)",
    "cuMemMap": "MapPhysical(ptr, size, offset, handle, flags)",
    "cuMemUnmap": "UnmapPhysical(ptr, size)",
    "cuMemSetAccess": "SetAccess(ptr, size, desc, count)",
    "cuMemGetAccess": "GetAccess(flags, location, ptr)",
}

_ARRAYS_AND_IMAGES = {
    "cuArrayCreate_v2": "CreateArray(pHandle, pAllocateArray)",
    "cuArray3DCreate_v2": "CreateArray(pHandle, pAllocateArray)",
    "cuArrayGetDescriptor_v2": "DescribeArray(pArrayDescriptor, hArray)",
    "cuArray3DGetDescriptor_v2": "DescribeArray(pArrayDescriptor, hArray)",
    "cuArrayDestroy": "DestroyArray(hArray)",
    "cuMipmappedArrayCreate":
        "CreateMipmappedArray(pHandle, pMipmappedArrayDesc, numMipmapLevels)",
    "cuMipmappedArrayGetLevel": "GetLevel(pLevelArray, hMipmappedArray, level)",
    "cuMipmappedArrayDestroy": "DestroyMipmappedArray(hMipmappedArray)",
    "cuMemcpyHtoA_v2":
        "cudaMemcpyToArray{ptds}(AsRuntime(dstArray), dstOffset, 0, srcHost, ByteCount,"
        " cudaMemcpyHostToDevice)",
    "cuMemcpyAtoH_v2":
        "cudaMemcpyFromArray{ptds}(dstHost, AsRuntime(srcArray), srcOffset, 0, ByteCount,"
        " cudaMemcpyDeviceToHost)",
    "cuMemcpyDtoA_v2":
        "cudaMemcpyToArray{ptds}(AsRuntime(dstArray), dstOffset, 0, At(srcDevice), ByteCount,"
        " cudaMemcpyDeviceToDevice)",
    "cuMemcpyAtoD_v2":
        "cudaMemcpyFromArray{ptds}(At(dstDevice), AsRuntime(srcArray), srcOffset, 0, ByteCount,"
        " cudaMemcpyDeviceToDevice)",
    "cuMemcpyAtoA_v2":
        "cudaMemcpyArrayToArray{ptds}(AsRuntime(dstArray), dstOffset, 0, AsRuntime(srcArray),"
        " srcOffset, 0, ByteCount, cudaMemcpyDeviceToDevice)",
    "cuMemcpyHtoAAsync_v2":
        "cudaMemcpyToArrayAsync(AsRuntime(dstArray), dstOffset, 0, srcHost, ByteCount,"
        " cudaMemcpyHostToDevice, hStream)",
    "cuMemcpyAtoHAsync_v2":
        "cudaMemcpyFromArrayAsync(dstHost, AsRuntime(srcArray), srcOffset, 0, ByteCount,"
        " cudaMemcpyDeviceToHost, hStream)",
    "cuTexObjectCreate": "CreateTexture(pTexObject, pResDesc, pTexDesc, pResViewDesc)",
    "cuTexObjectDestroy": "cudaDestroyTextureObject(texObject)",
    "cuTexObjectGetResourceDesc": "DescribeTextureResource(pResDesc, texObject)",
    "cuTexObjectGetTextureDesc": "DescribeTexture(pTexDesc, texObject)",
    "cuTexObjectGetResourceViewDesc": "DescribeTextureView(pResViewDesc, texObject)",
    "cuSurfObjectCreate": "CreateSurface(pSurfObject, pResDesc)",
    "cuSurfObjectDestroy": "cudaDestroySurfaceObject(surfObject)",
    "cuSurfObjectGetResourceDesc": "DescribeSurfaceResource(pResDesc, surfObject)",
}

_STREAMS_AND_EVENTS = {
    "cuStreamCreate": "cudaStreamCreateWithFlags(phStream, Flags)",
    "cuStreamCreateWithPriority": "cudaStreamCreateWithPriority(phStream, flags, priority)",
    "cuStreamGetPriority": "cudaStreamGetPriority(hStream, priority)",
    "cuStreamGetDevice": "cudaStreamGetDevice(hStream, device)",
    "cuStreamGetFlags": "cudaStreamGetFlags(hStream, flags)",
    "cuStreamGetId": "cudaStreamGetId(hStream, streamId)",
    "cuStreamGetCtx": "GetStreamContext(hStream, pctx)",
    "cuStreamWaitEvent": "cudaStreamWaitEvent(hStream, hEvent, Flags)",
    "cuStreamAddCallback": "AddCallback(hStream, callback, userData, flags)",
    "cuStreamQuery": "cudaStreamQuery(hStream)",
    "cuStreamSynchronize": "cudaStreamSynchronize(hStream)",
    "cuStreamDestroy_v2": "cudaStreamDestroy(hStream)",
    "cuStreamCopyAttributes": "cudaStreamCopyAttributes(dst, src)",
    "cuStreamGetAttribute":
        "cudaStreamGetAttribute(hStream, static_cast<cudaStreamAttrID>(attr),"
        " reinterpret_cast<cudaStreamAttrValue*>(value_out))",
    "cuStreamSetAttribute":
        "cudaStreamSetAttribute(hStream, static_cast<cudaStreamAttrID>(attr),"
        " reinterpret_cast<const cudaStreamAttrValue*>(value))",
    "cuStreamIsCapturing":
        "cudaStreamIsCapturing(hStream, reinterpret_cast<cudaStreamCaptureStatus*>("
        "captureStatus))",
    "cuThreadExchangeStreamCaptureMode":
        "cudaThreadExchangeStreamCaptureMode(reinterpret_cast<cudaStreamCaptureMode*>(mode))",
    "cuEventCreate": "cudaEventCreateWithFlags(phEvent, Flags)",
    "cuEventRecord": "cudaEventRecord(hEvent, hStream)",
    "cuEventRecordWithFlags": "cudaEventRecordWithFlags(hEvent, hStream, flags)",
    "cuEventQuery": "cudaEventQuery(hEvent)",
    "cuEventSynchronize": "cudaEventSynchronize(hEvent)",
    "cuEventDestroy_v2": "cudaEventDestroy(hEvent)",
    "cuIpcGetEventHandle":
        "cudaIpcGetEventHandle(reinterpret_cast<cudaIpcEventHandle_t*>(pHandle), event)",
    "cuIpcOpenEventHandle":
        "cudaIpcOpenEventHandle(phEvent, std::bit_cast<cudaIpcEventHandle_t>(handle))",
    "cuEventElapsedTime_v2": "cudaEventElapsedTime(pMilliseconds, hStart, hEnd)",
}

SYMBOLS = [*_ANYTIME,
           *(translated(n, e, Needs.DRIVER) for n, e in _DEVICES.items()),
           translated("cuEventElapsedTime", "cudaEventElapsedTime(pMilliseconds, hStart, hEnd)",
                      Needs.CONTEXT,
                      "CUresult (float * pMilliseconds, CUevent hStart, CUevent hEnd)"),
           *(translated(n, e) for lines in (_CONTEXTS, _MODULES, _LAUNCHES, _MEMORY,
                                            _ARRAYS_AND_IMAGES, _STREAMS_AND_EVENTS) for n, e in lines.items())]

LIBRARY = Library(name="cuda", prefix="Cuda", first_id=280, last_id=319, commands=[],
                  symbols=SYMBOLS, soname="libcuda.so.1", version_node="",
                  headers=("cuda.h", "cudaProfiler.h"), api_macros=("CUDAAPI",),
                  success="CUDA_SUCCESS")
