#include "client_shim/core/session/process_state.h"

#include <string>
#include <utility>

#include "base/try.h"
#include "client_shim/core/fork_guard.h"
#include "client_shim/core/transport/handshake.h"
#include "client_shim/core/visible_devices.h"

namespace torpor::shim {

ProcessState::ProcessState(std::function<Settings()> read_settings, MakeSession make_session)
    : read_settings_(std::move(read_settings)), make_session_(std::move(make_session)) {
  // Made last: the session's constructor uses the other members.
  first_ = make_session_(*this, 0, 0);
}

cudaError_t ProcessState::ChooseDevices(const Settings& settings, const Log& log) {
  if (!settings.visible_devices) return cudaSuccess;
  wire::InquiryReply reply;
  TORPOR_TRY(Inquire(ReadSettings(), /*has_session=*/false, reply));
  const std::string& text = *settings.visible_devices;
  std::vector<int> visible = VisibleDevices(text, reply.devices);
  if (!visible.empty()) {
    devices_.Choose(std::move(visible), reply.devices);
    return cudaSuccess;
  }
  // Users who want no device write nothing, or -1.
  if (!text.empty() && !text.starts_with('-'))
    log.Warn("CUDA_VISIBLE_DEVICES=" + text + " leaves none of the function's " +
             std::to_string(reply.devices.size()) +
             " devices, which are numbered from 0; no call of CUDA will work");
  return cudaErrorNoDevice;
}

ClientCore* ProcessState::OfDevice(int device) {
  if (device == 0) return first_.get();
  return devices_.Has(device) ? &OfIndex(devices_.IndexOf(device)) : nullptr;
}

ClientCore& ProcessState::OfIndex(int index) {
  if (index == devices_.IndexOf(0)) return *first_;
  const std::lock_guard lock(others_mutex_);
  std::unique_ptr<ClientCore>& session = others_[index];
  if (!session) session = make_session_(*this, devices_.DeviceOf(index), index);
  return *session;
}

ClientCore* ProcessState::FindOpen(int index) {
  if (ForkGuard::InChild() || !first_->IsOpen()) return nullptr;
  if (index == devices_.IndexOf(0)) return first_.get();
  const std::lock_guard lock(others_mutex_);
  const auto found = others_.find(index);
  return found != others_.end() && found->second->IsOpen() ? found->second.get() : nullptr;
}

void ProcessState::SetPrimary(const ClientCore& session, MemoryRequests& memory) {
  primary_ = &session;
  primary_memory_ = &memory;
}

}  // namespace torpor::shim
