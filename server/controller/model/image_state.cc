#include "server/controller/model/image_state.h"

#include <utility>

namespace torpor::server {

void ImageState::SettleResidency() {
  residency_ = !gpu_              ? Residency::kHost
               : is_source_only() ? Residency::kSource
                                  : Residency::kResident;
}

void ImageState::EndLeaving(bool is_dropped) {
  if (is_dropped) gpu_.reset();
  SettleResidency();
}

void ImageState::Forget() {
  gpu_.reset();
  SettleResidency();
}

void ImageState::BecomeSource(GpuIndex gpu) {
  source_ = gpu;
  if (!is_leaving()) SettleResidency();
}

void ImageState::ForgetSource() {
  source_.reset();
  if (!is_leaving()) SettleResidency();
}

void ImageState::BeginArrival(GpuIndex gpu) {
  file_holders_.insert(gpu);
  is_arriving_ = true;
  arrives_at_ = gpu;
}

void ImageState::Land(GpuIndex gpu) {
  gpu_ = gpu;
  SettleResidency();
}

std::vector<ImageState::Task> ImageState::EndArrival() {
  is_arriving_ = false;
  return std::exchange(after_arrival_, {});
}

bool ImageState::LoseExecutor(GpuIndex gpu) {
  file_holders_.erase(gpu);
  peer_holders_.erase(gpu);
  const bool was_source = source_ == gpu;
  const bool was_here = gpu_ == gpu;
  if (was_source) source_.reset();
  if (was_here) gpu_.reset();
  if (was_here || !is_leaving()) SettleResidency();
  return was_here && !was_source;
}

void ImageState::NoteLease(LeaseId lease, bool is_explicit) {
  const bool was_saved = changes_ == Changes::kSaved || changes_ == Changes::kChangedAgain;
  // A function that loads its model in its first request must not have to do so again.
  if (!is_explicit || !was_saved) unsaved_lease_ = lease;
  changes_ = was_saved ? Changes::kChangedAgain : Changes::kNeverSaved;
}

void ImageState::NoteSaved(LeaseId unsaved_before) {
  if (unsaved_lease_ == unsaved_before) unsaved_lease_ = {};
  changes_ = Changes::kSaved;
}

bool ImageState::has_changes() const {
  return changes_ == Changes::kNeverSaved || changes_ == Changes::kChangedAgain;
}

}  // namespace torpor::server
