#include "client_shim/cublas/captured_handle.h"

#include <map>
#include <mutex>

namespace torpor::shim {
namespace {

struct Table {
  std::mutex mutex;
  std::map<CublasSettings, std::weak_ptr<const CapturedHandle>> handles;
};

// Never destroyed, like the table of the programs' handles.
Table& TheTable() {
  static auto* const table = new Table;
  return *table;
}

}  // namespace

cudaError_t CapturedHandle::Find(ClientCore& core, const CublasSettings& settings,
                                 std::shared_ptr<const CapturedHandle>& found) {
  Table& table = TheTable();
  const std::lock_guard lock(table.mutex);
  std::erase_if(table.handles, [](const auto& entry) { return entry.second.expired(); });
  if (const auto entry = table.handles.find(settings); entry != table.handles.end())
    found = entry->second.lock();
  if (found) return cudaSuccess;
  std::uint64_t id = 0;
  if (const cudaError_t error = CublasHandle::Create(core, id)) return error;
  const auto made = std::make_shared<CapturedHandle>(core, id);
  made->handle_.wanted = settings;
  // A graph's commands run on the streams of the graph's launches.
  made->handle_.wanted.stream = 0;
  if (const cudaError_t error = made->handle_.SendSettings()) return error;
  table.handles[settings] = made;
  found = made;
  return cudaSuccess;
}

CapturedHandle::~CapturedHandle() { handle_.Destroy(); }

}  // namespace torpor::shim
