#pragma once

#include <functional>
#include <optional>
#include <set>
#include <vector>

#include "base/ids.h"

namespace torpor::server {

// State of one session's image: the GPU where it is current, replicas, source, arrival, executors
// with access, and changes missing from the host's copy. Pure bookkeeping, without messages; on the
// controller's thread.
class ImageState {
 public:
  using Task = std::function<void()>;

  enum class Residency {
    kHost,      // on no GPU, except for replicas
    kResident,  // on a GPU
    kLeaving,   // on a GPU, and about to be dropped there
  };

  // --- Where it is ---
  Residency residency() const { return residency_; }
  // The GPU that holds the image and perhaps changes that the host's lacks; unset in kHost only.
  std::optional<GpuIndex> gpu() const { return gpu_; }
  bool IsOn(GpuIndex gpu) const { return gpu_ == gpu; }
  // Whether other GPUs may map the image.
  bool is_shareable() const { return residency_ == Residency::kResident; }
  bool is_leaving() const { return residency_ == Residency::kLeaving; }
  // The swap-out of the image has begun; ends with EndLeaving.
  void BeginLeaving() { residency_ = Residency::kLeaving; }
  void EndLeaving(bool is_dropped);
  // The session ends: nothing of the image is on a GPU.
  void Forget();

  // --- Replicas: copies on GPUs without any change that the host's lacks ---
  // A replica has the host's bytes of the time when it was last in step, and so is behind once a
  // lease elsewhere may have changed the image.
  const std::set<GpuIndex>& replicas() const { return replicas_; }
  bool HasReplicaOn(GpuIndex gpu) const { return replicas_.count(gpu) > 0; }
  bool IsReplicaBehind(GpuIndex gpu) const { return behind_.count(gpu) > 0; }
  // The changes on the image's GPU are in the host's: what is there is a replica, in step.
  void BecomeReplica();
  void NoteReplicaInStep(GpuIndex gpu) { behind_.erase(gpu); }
  // The image changes, or allocations come or go.
  void NoteReplicasBehind() { behind_ = replicas_; }
  // The replica is to be dropped once the image has arrived elsewhere: the scheduler no longer
  // counts what it grows by.
  void NoteReplicaGoing(GpuIndex gpu) { going_.insert(gpu); }
  bool IsReplicaGoing(GpuIndex gpu) const { return going_.count(gpu) > 0; }
  // The replica was dropped.
  void ForgetReplica(GpuIndex gpu);

  // --- The replica from which the last swap-in copies, or has copied: lost or not, the GPU of the
  // swap-in must let go of the memory ---
  std::optional<GpuIndex> source() const { return source_; }
  void SetSource(std::optional<GpuIndex> gpu) { source_ = gpu; }

  // --- Arrival: from the start of a swap-in until its last copy is done ---
  bool is_arriving() const { return is_arriving_; }
  // The GPU of the last swap-in.
  std::optional<GpuIndex> arrives_at() const { return arrives_at_; }
  // Whether the last swap-in went to `gpu`.
  bool ArrivedLastAt(GpuIndex gpu) const { return arrives_at_ == gpu; }
  void BeginArrival(GpuIndex gpu);
  // The executor has answered the swap-in: the image is resident, though copies may go on.
  void Land(GpuIndex gpu);
  // Runs `task` after the arrival has ended. Only while is_arriving().
  void AfterArrival(Task task) { after_arrival_.push_back(std::move(task)); }
  // Ends the arrival. Returns the tasks of AfterArrival. Idempotent.
  [[nodiscard]] std::vector<Task> EndArrival();

  // --- Executors that keep something of it ---
  // Executors of other GPUs that map the image.
  const std::set<GpuIndex>& peer_holders() const { return peer_holders_; }
  void AddPeerHolder(GpuIndex gpu) { peer_holders_.insert(gpu); }
  // Returns false if `gpu` held nothing.
  bool RemovePeerHolder(GpuIndex gpu) { return peer_holders_.erase(gpu) > 0; }
  void RemoveAllPeerHolders() { peer_holders_.clear(); }

  // The executor of `gpu` has died. Returns whether the resident image was lost; a lost replica is
  // no loss.
  bool LoseExecutor(GpuIndex gpu);

  // --- Changes that the host's image lacks ---
  // The image may change under `lease`, by its session or by an opener of its memory: replicas are
  // behind.
  void NoteLease(LeaseId lease, bool is_explicit);
  // All changes of leases up to `unsaved_before`, as unsaved_lease() was then, have been written
  // back.
  void NoteSaved(LeaseId unsaved_before);
  // Whether the GPU's image may differ from the host's.
  bool has_changes() const;
  // The image of a session that an earlier torpord has opened, on no GPU. `replays`: the session is
  // to make again what the host's image lacks.
  void Restore(bool was_saved, bool replays);
  // The GPU's changes are lost, and the session is to make them again with its next lease: until
  // NoteLease.
  void NoteReplayDue() { is_replay_due_ = true; }
  bool is_replay_due() const { return is_replay_due_; }
  // The lease whose work must reach the host's image and has not yet: one outside of requests, or
  // the first of all. If the executor dies now, the program's set-up is lost.
  LeaseId unsaved_lease() const { return unsaved_lease_; }

 private:
  // Whether the image was ever saved, and whether it may have changed since.
  enum class Changes { kNeverChanged, kNeverSaved, kSaved, kChangedAgain };

  void SettleResidency();

  Residency residency_ = Residency::kHost;
  std::optional<GpuIndex> gpu_;
  std::set<GpuIndex> replicas_;  // never gpu_
  std::set<GpuIndex> behind_;    // of them
  std::set<GpuIndex> going_;     // of them
  std::optional<GpuIndex> source_;
  bool is_arriving_ = false;
  std::optional<GpuIndex> arrives_at_;
  std::vector<Task> after_arrival_;
  std::set<GpuIndex> peer_holders_;
  Changes changes_ = Changes::kNeverChanged;
  LeaseId unsaved_lease_;
  bool is_replay_due_ = false;
};

}  // namespace torpor::server
