"""NVML: libnvidia-ml.so.1, of which the basic queries answer.

Nothing crosses the wire. Expressions call the functions of client_shim/nvml/calls.h. The library
comes with NVIDIA's driver and its header with a part of the toolkit that few have: the exports are
listed here, and client_shim/nvml/nvml_api.h declares those that answer.
"""

from vocabulary import Library, Needs, translated, value

_ANYTIME = {
    "nvmlInit": "Initialize()",
    "nvmlInit_v2": "Initialize()",
    "nvmlInitWithFlags": "Initialize()",
    "nvmlShutdown": "Shutdown()",
    "nvmlSystemGetNVMLVersion": "GetInterfaceVersion(version, length)",
    "nvmlSystemGetCudaDriverVersion": "GetCudaVersion(version)",
    "nvmlSystemGetCudaDriverVersion_v2": "GetCudaVersion(version)",
}

_INITIALIZED = {
    "nvmlSystemGetDriverVersion": "GetDriverVersion(version, length)",
    "nvmlDeviceGetCount": "GetCount(count)",
    "nvmlDeviceGetCount_v2": "GetCount(count)",
    "nvmlDeviceGetHandleByIndex": "FindByIndex(index, device)",
    "nvmlDeviceGetHandleByIndex_v2": "FindByIndex(index, device)",
    "nvmlDeviceGetHandleByUUID": "FindByUuid(uuid, device)",
    "nvmlDeviceGetHandleByPciBusId": "FindByPciBusId(id, device)",
    "nvmlDeviceGetHandleByPciBusId_v2": "FindByPciBusId(id, device)",
    "nvmlDeviceGetIndex": "GetIndex(device, index)",
    "nvmlDeviceGetName": "GetName(device, name, length)",
    "nvmlDeviceGetUUID": "GetUuid(device, uuid, length)",
    "nvmlDeviceGetPciInfo_v3": "GetPciInfo(device, info)",
    "nvmlDeviceGetCudaComputeCapability": "GetComputeCapability(device, major, minor)",
    "nvmlDeviceGetMemoryInfo": "GetMemory(device, memory)",
    "nvmlDeviceGetMemoryInfo_v2": "GetMemory(device, memory)",
    "nvmlDeviceGetUtilizationRates": "GetUtilization(device, utilization)",
    "nvmlDeviceGetComputeRunningProcesses": "GetProcesses(device, count, processes)",
    "nvmlDeviceGetComputeRunningProcesses_v2": "GetProcesses(device, count, processes)",
    "nvmlDeviceGetComputeRunningProcesses_v3": "GetProcesses(device, count, processes)",
}

# Of version 13.
_EXPORTS = {
    "nvmlDeviceGet": """
APIRestriction AccountingBufferSize AccountingMode AccountingPids AccountingStats
AccountingStats_v2 ActiveVgpus AdaptiveClockInfoStatus AddressingMode ApplicationsClock
Architecture Attributes Attributes_v2 AutoBoostedClocksEnabled BAR1MemoryInfo BBXTimeData_v1
BoardId BoardPartNumber Brand BridgeChipInfo BusType C2cModeInfoV Capabilities ClkMonStatus Clock
ClockInfo ClockOffsets ComputeInstanceId ComputeMode ComputeRunningProcesses
ComputeRunningProcesses_v2 ComputeRunningProcesses_v3 ConfComputeGpuAttestationReport
ConfComputeGpuCertificate ConfComputeMemSizeInfo ConfComputeProtectedMemoryUsage CoolerInfo Count
Count_v2 CpuAffinity CpuAffinityWithinScope CreatableVgpus CudaComputeCapability
CurrPcieLinkGeneration CurrPcieLinkWidth CurrentClockFreqs CurrentClocksEventReasons
CurrentClocksThrottleReasons DecoderUtilization DefaultApplicationsClock DefaultEccMode
DetailedEccErrors DeviceHandleFromMigDeviceHandle DisplayActive DisplayMode DramEncryptionMode
DriverModel DriverModel_v2 DynamicPstatesInfo EccMode EncoderCapacity EncoderSessions EncoderStats
EncoderUtilization EnforcedPowerLimit FBCSessions FBCStats FanControlPolicy_v2 FanSpeed FanSpeedRPM
FanSpeed_v2 FieldValues GpcClkMinMaxVfOffset GpcClkVfOffset GpuFabricInfo GpuFabricInfoV
GpuInstanceById GpuInstanceId GpuInstancePossiblePlacements GpuInstancePossiblePlacements_v2
GpuInstanceProfileInfo GpuInstanceProfileInfoByIdV GpuInstanceProfileInfoV
GpuInstanceRemainingCapacity GpuInstances GpuMaxPcieLinkGeneration GpuOperationMode
GraphicsRunningProcesses GraphicsRunningProcesses_v2 GraphicsRunningProcesses_v3
GridLicensableFeatures GridLicensableFeatures_v2 GridLicensableFeatures_v3
GridLicensableFeatures_v4 GspFirmwareMode GspFirmwareVersion HandleByIndex HandleByIndex_v2
HandleByPciBusId HandleByPciBusId_v2 HandleBySerial HandleByUUID HandleByUUIDV HostVgpuMode
Hostname_v1 Index InforomConfigurationChecksum InforomImageVersion InforomVersion IrqNum
JpgUtilization LastBBXFlushTime MPSComputeRunningProcesses MPSComputeRunningProcesses_v2
MPSComputeRunningProcesses_v3 MarginTemperature MaxClockInfo MaxCustomerBoostClock
MaxMigDeviceCount MaxPcieLinkGeneration MaxPcieLinkWidth MemClkMinMaxVfOffset MemClkVfOffset
MemoryAffinity MemoryBusWidth MemoryErrorCounter MemoryInfo MemoryInfo_v2 MigDeviceHandleByIndex
MigMode MinMaxClockOfPState MinMaxFanSpeed MinorNumber ModuleId MultiGpuBoard Name NumFans
NumGpuCores NumaNodeId NvLinkCapability NvLinkErrorCounter NvLinkInfo NvLinkRemoteDeviceType
NvLinkRemotePciInfo NvLinkRemotePciInfo_v2 NvLinkState NvLinkUtilizationControl
NvLinkUtilizationCounter NvLinkVersion NvlinkBwMode NvlinkSupportedBwModes OfaUtilization P2PStatus
PciInfo PciInfoExt PciInfo_v2 PciInfo_v3 PcieLinkMaxSpeed PcieReplayCounter PcieSpeed
PcieThroughput Pdi PerformanceModes PerformanceState PersistenceMode PgpuMetadataString
PlatformInfo PowerManagementDefaultLimit PowerManagementLimit PowerManagementLimitConstraints
PowerManagementMode PowerMizerMode_v1 PowerSource PowerState PowerUsage ProcessUtilization
ProcessesUtilizationInfo RemappedRows RemappedRows_v2 RepairStatus RetiredPages
RetiredPagesPendingStatus RetiredPages_v2 RowRemapperHistogram RunningProcessDetailList Samples
Serial SramEccErrorStatus SramUniqueUncorrectedEccErrorCounts SupportedClocksEventReasons
SupportedClocksThrottleReasons SupportedEventTypes SupportedGraphicsClocks SupportedMemoryClocks
SupportedPerformanceStates SupportedVgpus TargetFanSpeed Temperature TemperatureThreshold
TemperatureV ThermalSettings TopologyCommonAncestor TopologyNearestGpus TotalEccErrors
TotalEnergyConsumption UUID UnrepairableMemoryFlag_v1 UtilizationRates VbiosVersion
VgpuCapabilities VgpuHeterogeneousMode VgpuInstancesUtilizationInfo VgpuMetadata
VgpuProcessUtilization VgpuProcessesUtilizationInfo VgpuSchedulerCapabilities VgpuSchedulerLog
VgpuSchedulerLog_v2 VgpuSchedulerState VgpuSchedulerState_v2 VgpuTypeCreatablePlacements
VgpuTypeSupportedPlacements VgpuUtilization ViolationStatus VirtualizationMode
""",
    "nvmlDeviceSet": """
APIRestriction AccountingMode ApplicationsClocks AutoBoostedClocksEnabled ClockOffsets ComputeMode
ConfComputeUnprotectedMemSize CpuAffinity DefaultAutoBoostedClocksEnabled DefaultFanSpeed_v2
DramEncryptionMode DriverModel EccMode FanControlPolicy FanSpeed_v2 GpcClkVfOffset GpuLockedClocks
GpuOperationMode Hostname_v1 MemClkVfOffset MemoryLockedClocks MigMode
NvLinkDeviceLowPowerThreshold NvLinkUtilizationControl NvlinkBwMode PersistenceMode
PowerManagementLimit PowerManagementLimit_v2 PowerMizerMode_v1 RusdSettings_v1 TemperatureThreshold
VgpuCapabilities VgpuHeterogeneousMode VgpuSchedulerState VgpuSchedulerState_v2 VirtualizationMode
""",
    "nvmlDevice": """
ClearAccountingPids ClearCpuAffinity ClearEccErrorCounts ClearFieldValues CreateGpuInstance
CreateGpuInstanceWithPlacement DiscoverGpus FreezeNvLinkUtilizationCounter IsMigDeviceHandle
ModifyDrainState OnSameBoard PowerSmoothingActivatePresetProfile PowerSmoothingSetState
PowerSmoothingUpdatePresetProfileParam QueryDrainState ReadPRMCounters_v1 ReadWritePRM_v1
RegisterEvents RemoveGpu RemoveGpu_v2 ResetApplicationsClocks ResetGpuLockedClocks
ResetMemoryLockedClocks ResetNvLinkErrorCounters ResetNvLinkUtilizationCounter ValidateInforom
VgpuForceGspUnload WorkloadPowerProfileClearRequestedProfiles
WorkloadPowerProfileGetCurrentProfiles WorkloadPowerProfileGetProfilesInfo
WorkloadPowerProfileSetRequestedProfiles WorkloadPowerProfileUpdateProfiles_v1
""",
    "nvmlGpm": """
MetricsGet MigSampleGet QueryDeviceSupport QueryIfStreamingEnabled SampleAlloc SampleFree SampleGet
SetStreamingEnabled
""",
    "nvmlGpuInstance": """
CreateComputeInstance CreateComputeInstanceWithPlacement Destroy GetActiveVgpus
GetComputeInstanceById GetComputeInstancePossiblePlacements GetComputeInstanceProfileInfo
GetComputeInstanceProfileInfoV GetComputeInstanceRemainingCapacity GetComputeInstances
GetCreatableVgpus GetInfo GetVgpuHeterogeneousMode GetVgpuSchedulerLog GetVgpuSchedulerLog_v2
GetVgpuSchedulerState GetVgpuSchedulerState_v2 GetVgpuTypeCreatablePlacements
SetVgpuHeterogeneousMode SetVgpuSchedulerState SetVgpuSchedulerState_v2
""",
    "nvmlSystem": """
EventSetCreate EventSetFree EventSetWait GetCPER_v1 GetConfComputeCapabilities
GetConfComputeGpusReadyState GetConfComputeKeyRotationThresholdInfo GetConfComputeSettings
GetConfComputeState GetCudaDriverVersion GetCudaDriverVersion_v2 GetDriverBranch GetDriverVersion
GetHicVersion GetNVMLVersion GetNvlinkBwMode GetProcessName GetTopologyGpuSet RegisterEvents
SetConfComputeGpusReadyState SetConfComputeKeyRotationThresholdInfo SetNvlinkBwMode
""",
    "nvmlUnit": """
GetCount GetDevices GetFanSpeedInfo GetHandleByIndex GetLedState GetPsuInfo GetTemperature
GetUnitInfo SetLedState
""",
    "nvmlVgpuInstance": """
ClearAccountingPids GetAccountingMode GetAccountingPids GetAccountingStats GetEccMode
GetEncoderCapacity GetEncoderSessions GetEncoderStats GetFBCSessions GetFBCStats GetFbUsage
GetFrameRateLimit GetGpuInstanceId GetGpuPciId GetLicenseInfo GetLicenseInfo_v2 GetLicenseStatus
GetMdevUUID GetMetadata GetPlacementId GetRuntimeStateSize GetType GetUUID GetVmDriverVersion
GetVmID SetEncoderCapacity
""",
    "nvmlVgpuType": """
GetBAR1Info GetCapabilities GetClass GetDeviceID GetFbReservation GetFrameRateLimit
GetFramebufferSize GetGpuInstanceProfileId GetGspHeapSize GetLicense GetMaxInstances
GetMaxInstancesPerGpuInstance GetMaxInstancesPerVm GetName GetNumDisplayHeads GetResolution
""",
    "nvml": """
ComputeInstanceDestroy ComputeInstanceGetInfo ComputeInstanceGetInfo_v2 ErrorString EventSetCreate
EventSetFree EventSetWait EventSetWait_v2 GetExcludedDeviceCount GetExcludedDeviceInfoByIndex
GetVgpuCompatibility GetVgpuDriverCapabilities GetVgpuVersion Init InitWithFlags Init_v2
SetVgpuVersion Shutdown
""",
}

LIBRARY = Library(name="nvml", prefix="Nvml", first_id=0, last_id=0, commands=[],
                  symbols=[value("nvmlErrorString", "ErrorText(result)"),
                           *(translated(n, e, Needs.NOTHING) for n, e in _ANYTIME.items()),
                           *(translated(n, e, Needs.DRIVER) for n, e in _INITIALIZED.items())],
                  exports=tuple(prefix + name for prefix, names in _EXPORTS.items()
                                for name in names.split()),
                  soname="libnvidia-ml.so.1", version_node="",
                  headers=("client_shim/nvml/nvml_api.h",), api_macros=("NVMLAPI",),
                  success="NVML_SUCCESS")
