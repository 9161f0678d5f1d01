#include "emulator/driver/base/exceptions.h"

#include <exception>
#include <new>
#include <string>

#include "emulator/driver/base/messages.h"

namespace torpor::emulator {

CUresult AfterException() noexcept {
  try {
    throw;
  } catch (const std::bad_alloc&) {
    return CUDA_ERROR_OUT_OF_MEMORY;
  } catch (const std::exception& error) {
    Say(std::string("internal error: ") + error.what());
  } catch (...) {
    Say("internal error");
  }
  return CUDA_ERROR_UNKNOWN;
}

}  // namespace torpor::emulator
