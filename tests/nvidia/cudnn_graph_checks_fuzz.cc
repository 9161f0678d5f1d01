#include <cstdlib>

#include "nvidia/cudnn/graph_checks.h"
#include "proto/wire/codec.h"

// The bytes of a graph: what is found valid must have tensors within their bounds.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace torpor;  // NOLINT
  DnnGraph graph;
  wire::Reader reader({data, size});
  reader(graph);
  if (!reader.done() || DnnFault(graph) != nullptr) return 0;
  std::uint32_t made = 0;
  for (std::uint32_t i = 0; i < graph.tensors.size(); ++i) {
    if (DnnBytes(graph.tensors[i].shape) == 0) std::abort();
    if (DnnUseOf(graph, i).is_written) ++made;
  }
  if (made != graph.operations.size()) std::abort();
  return 0;
}
