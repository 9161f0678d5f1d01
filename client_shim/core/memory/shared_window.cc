#include "client_shim/core/memory/shared_window.h"

#include <utility>

namespace torpor::shim {

Result<void, int> SharedWindow::Map(const wire::HelloReply& session, Deadline deadline) {
  Result<SharedRegions, int> regions = SharedRegions::Map(session, deadline);
  if (!regions) return regions.failure();
  regions_ = std::move(regions).value();
  slots_.Attach(regions_.page());
  ring_.SetBeforeReuse([this](std::uint64_t offset) { uploads_.BeforeReuse(offset); });
  ring_.Attach(regions_.window(), wire::kCompletionPageBytes, session.window_bytes);
  return {};
}

}  // namespace torpor::shim
