#include "emulator/driver/submission/graph.h"

#include <utility>

#include "emulator/driver/device/device.h"

namespace torpor::emulator {

CUresult LaunchGraph(const StreamTarget& target, GraphWork work) {
  DriverDevice& device = target.context->device();
  const CostedCall cost(device.call_costs(), device.call_costs().costs().launch_us);
  target.context->WaitForQueue(target.stream);
  target.context->Submit(
      target.stream,
      [work = std::move(work)] {
        for (const Capture::Work& piece : *work) {
          if (const CUresult result = piece(); result != CUDA_SUCCESS) return result;
        }
        return CUDA_SUCCESS;
      },
      Stream::Placement::kQueue);
  return CUDA_SUCCESS;
}

}  // namespace torpor::emulator
