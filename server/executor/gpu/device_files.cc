#include "server/executor/gpu/device_files.h"

#include <unistd.h>

#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace torpor::executor {

// A GPU's own file is not looked for: its number need not be the driver's index.
std::string MissingDeviceFiles(const std::string& folder) {
  std::vector<std::string> missing;
  for (const char* const name : {"nvidiactl", "nvidia-uvm"}) {
    std::string path = absl::StrCat(folder, "/", name);
    if (access(path.c_str(), R_OK | W_OK) != 0) missing.push_back(std::move(path));
  }
  if (missing.empty()) return "";
  return absl::StrCat("NVIDIA's driver needs ", absl::StrJoin(missing, " and "),
                      " and a /dev/nvidiaN for each GPU, readable and writable by torpord's user: "
                      "without privileges nothing can make them here, so pass them into the "
                      "container, or run `nvidia-modprobe -u -c 0` on the host before");
}

}  // namespace torpor::executor
