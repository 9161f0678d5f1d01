#include "client_shim/cudart/module/variable_address.h"

#include <mutex>

#include "client_shim/cudart/call/entry.h"

namespace torpor::shim {
namespace {

// Asks for the address on the present GPU. The journal tells executors of other GPUs the variable
// behind the address.
cudaError_t AskAddress(const ClientVariable& variable, std::uint64_t& address,
                       std::uint64_t& bytes) {
  const std::uint64_t module = variable.module->wire.here();
  wire::SymbolAddressResult result;
  TORPOR_TRY(Ask(wire::SymbolAddress{module, variable.name}, result));
  bytes = result.bytes;
  if (!RememberSymbolAddress(&variable, result.address, result.bytes)) {
    Core().WarnOnce("symbol address", "two variables of different GPUs have the same address");
    return cudaErrorNotSupported;
  }
  address = result.address;
  const wire::SymbolPublish publish{module, variable.name, address};
  return Core().Configure(module, Encode(publish), address);
}

}  // namespace

cudaError_t FindVariable(const ClientVariable& variable, SymbolSpan& span) {
  const std::lock_guard lock(variable.module->mutex);  // publishes before another thread can ask
  span = SymbolSpanOf(&variable);
  return span.begin != 0 ? cudaSuccess : AskAddress(variable, span.begin, span.bytes);
}

}  // namespace torpor::shim
