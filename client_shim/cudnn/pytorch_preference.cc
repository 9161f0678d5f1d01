// PyTorch builds its convolutions with cuDNN's backend API, which is not here, unless its
// environment asks for the legacy one. It reads that once this library is loaded.

#include <cstdlib>

namespace torpor {
namespace {

[[gnu::constructor]] void PreferTheLegacyApi() {
  constexpr int kKeepWhatTheUserSays = 0;
  setenv("TORCH_CUDNN_V8_API_DISABLED", "1", kKeepWhatTheUserSays);
}

}  // namespace
}  // namespace torpor
