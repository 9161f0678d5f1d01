#include <cstdlib>
#include <span>

#include "nvidia/cudnn/recurrent_checks.h"
#include "proto/wire/codec.h"

// Shapes that pass the check can be used without further ones.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace torpor;  // NOLINT
  DnnRnnShapes shapes;
  wire::Reader reader(std::span(data, size));
  reader(shapes);
  if (!reader.done() || DnnFault(shapes) != nullptr) return 0;
  for (const DnnRnnData* sequences : {&shapes.x, &shapes.y}) {
    if (sequences->lengths.size() != static_cast<std::size_t>(sequences->batch)) std::abort();
    for (const std::int32_t length : sequences->lengths) {
      if (length < 0 || length > sequences->max_steps) std::abort();
    }
  }
  if (DnnRows(shapes.x) != DnnRows(shapes.y)) std::abort();
  if (DnnPseudoLayers(shapes.rnn) < 1 || DnnLinearLayers(shapes.rnn) < 2) std::abort();
  return 0;
}
