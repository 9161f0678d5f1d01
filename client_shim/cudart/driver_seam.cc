#include "client_shim/cudart/driver_seam.h"

#include "client_shim/cudart/entry.h"
#include "client_shim/cudart/libraries.h"
#include "client_shim/cudart/memset.h"

extern "C" __attribute__((visibility("default"))) const torpor::shim::DriverSeam*
torpor_driver_seam() {
  static constexpr torpor::shim::DriverSeam kSeam = {
      torpor::shim::kRuntimeFunctions, torpor::shim::SetInsideDriverCall,
      torpor::shim::ThreadUsesRuntime, torpor::shim::ProcessUsesRuntime,
      torpor::shim::SetElements,       torpor::shim::FindLibraryOf,
  };
  return &kSeam;
}
