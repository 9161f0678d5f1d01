#include "client_shim/cudart/driver_seam.h"

#include "client_shim/cudart/call/entry.h"
#include "client_shim/cudart/copy/memset.h"
#include "client_shim/cudart/module/libraries.h"

extern "C" __attribute__((visibility("default"))) const torpor::shim::DriverSeam*
torpor_driver_seam() {
  static constexpr torpor::shim::DriverSeam kSeam = {
      torpor::shim::kRuntimeFunctions, torpor::shim::SetInsideDriverCall,
      torpor::shim::ThreadUsesRuntime, torpor::shim::ProcessUsesRuntime,
      torpor::shim::SetElements,       torpor::shim::FindLibraryOf,
  };
  return &kSeam;
}
