#include "emulator/driver/api/failure_log.h"

#include <exception>
#include <string>

#include "emulator/driver/base/messages.h"
#include "emulator/driver/process/driver.h"

namespace torpor::emulator {

void LogFailure(const char* name, CUresult error) noexcept {
  Driver& driver = Driver::Get();
  if (error == CUDA_ERROR_NOT_READY || driver.state() != CUDA_SUCCESS ||
      !driver.topology().strict.log_failures) {
    return;
  }
  const char* text = nullptr;
  cuGetErrorName(error, &text);
  try {
    SayToListeners(std::string(name) + ": " + (text == nullptr ? "unknown error" : text));
  } catch (const std::exception&) {
    return;  // too little memory for a message, which changes no answer
  }
}

}  // namespace torpor::emulator
