#pragma once

#include <cstdio>
#include <cstdlib>

#include "examples/encoder/model.h"
#include "examples/service/program.h"

namespace torpor::examples::encoder {

// The flags that say which encoder it is: the same for the program and its reference.
inline constexpr const char* kShapeUsage =
    R"(  --layers N      default 4
  --hidden N      width, a multiple of 64 (default 256)
  --vocabulary N  default 8192
  --seed N        of the weights (default 1)
)";

inline Flags ShapeFlags() {
  return {{"layers", "4"}, {"hidden", "256"}, {"vocabulary", "8192"}, {"seed", "1"}};
}

inline Shape ShapeFromFlags(const Flags& flags) {
  Shape shape;
  shape.layers = IntFlag(flags, "layers", 1, 128);
  shape.hidden = IntFlag(flags, "hidden", kHeadWidth, 8192);
  shape.vocabulary = IntFlag(flags, "vocabulary", 1, 1 << 20);
  shape.seed = static_cast<std::uint64_t>(IntFlag(flags, "seed", 0, 0x7fffffff));
  if (shape.hidden % kHeadWidth != 0) {
    std::fprintf(stderr, "--hidden: %d is not a multiple of %d\n", shape.hidden, kHeadWidth);
    std::exit(2);
  }
  return shape;
}

}  // namespace torpor::examples::encoder
