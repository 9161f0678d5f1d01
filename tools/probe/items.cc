#include "tools/probe/items.h"

#include <array>

namespace torpor::probe {
namespace {

constexpr std::array kItems = {
    Item{"reservations", &ProbeReservations, 20, "are addresses given as hints say"},
    Item{"virtual_memory", &ProbeVirtualMemory, 40, "what do calls on handles cost"},
    Item{"registrations", &ProbeRegistrations, 30, "what does pinning memory files cost"},
    Item{"uploads", &ProbeUploads, 30, "how fast do copies go, and over two registrations"},
    Item{"hidden_faults", &ProbeHiddenFaults, 20, "do idle streams tell faults of others"},
    Item{"messages", &ProbeMessages, 20, "where do messages and printf go"},
    Item{"assertions", &ProbeAssertions, 20, "where do the texts of assertions go"},
    Item{"limits", &ProbeLimits, 20, "which limits can be set after use"},
    Item{"memory", &ProbeMemory, 40, "how much do context, libraries and stacks take"},
    Item{"latencies", &ProbeLatencies, 20, "how long do launches and written values take"},
    Item{"stalls", &ProbeStalls, 40, "what stalls launches of another thread"},
    Item{"loading", &ProbeLoading, 20, "when are functions loaded"},
};

}  // namespace

std::span<const Item> Items() { return kItems; }

}  // namespace torpor::probe
