#pragma once

#include "client_shim/core/memory/completion_slots.h"
#include "client_shim/core/memory/kept_uploads.h"
#include "client_shim/core/memory/payload_ring.h"
#include "client_shim/core/memory/shared_regions.h"

namespace torpor::shim {

// The memory that a session shares with its executors: the completion page's slots and, behind the
// page, the ring of payloads. Also keeps the session's device addresses and host arena mapped.
class SharedWindow {
 public:
  SharedWindow() = default;
  SharedWindow(const SharedWindow&) = delete;
  SharedWindow& operator=(const SharedWindow&) = delete;

  // Maps the memory that the daemon named in `session`. The failure's code is an errno. Call at
  // most once, before any other function.
  Result<void, int> Map(const wire::HelloReply& session, Deadline deadline);

  const wire::CompletionPage* page() const { return regions_.page(); }
  CompletionSlots& slots() { return slots_; }
  const CompletionSlots& slots() const { return slots_; }
  PayloadRing& ring() { return ring_; }
  // Uploads of which the ring reports each piece.
  KeptUploads& uploads() { return uploads_; }
  const std::uint8_t* window() const { return regions_.window(); }

 private:
  SharedRegions regions_;
  CompletionSlots slots_;
  PayloadRing ring_{slots_};
  KeptUploads uploads_{slots_};
};

}  // namespace torpor::shim
