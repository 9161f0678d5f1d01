#include "server/executor/image/link_profile.h"

#include <fcntl.h>
#include <spdlog/spdlog.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cmath>
#include <cstring>
#include <functional>
#include <nlohmann/json.hpp>
#include <optional>
#include <thread>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/clock.h"
#include "base/kept_file.h"
#include "base/status_macros.h"
#include "base/unique_fd.h"
#include "base/uuid.h"
#include "server/executor/gpu/device_mapping.h"
#include "server/executor/image/swap_options.h"

namespace torpor::executor {
namespace {

using Json = nlohmann::json;

constexpr int kVersion = 1;
constexpr std::size_t kMaxFileBytes = 64 * kKiB;
constexpr std::size_t kMaxPoints = 64;
constexpr double kMaxRate = 1e15;  // bytes a second

// Limit and interval of waiting for other executors that measure.
constexpr Duration kTurnPatience = std::chrono::seconds(5);
constexpr Duration kTurnLook = std::chrono::milliseconds(10);

absl::Status NoProfile(std::string_view why) {
  return absl::InvalidArgumentError(absl::StrCat("not a link's profile: ", std::string(why)));
}

absl::StatusOr<memory::BandwidthPoint> DecodePoint(const Json& pair) {
  if (!pair.is_array() || pair.size() != 2 || !pair[0].is_number_unsigned() ||
      !pair[1].is_number()) {
    return NoProfile("a point of the curve is a size and a rate");
  }
  const memory::BandwidthPoint point{pair[0].get<Bytes>(), pair[1].get<double>()};
  const bool is_sane = point.copy_bytes >= kMinGroupBytes && point.copy_bytes <= kGiB &&
                       std::isfinite(point.bytes_per_second) && point.bytes_per_second > 0 &&
                       point.bytes_per_second <= kMaxRate;
  if (!is_sane) return NoProfile("a point of the curve is out of range");
  return point;
}

// Owns memory of the GPU or of a peer, mapped at an address of the GPU.
class DeviceBuffer {
 public:
  DeviceBuffer(const Device& device, Bytes bytes) : device_(device), bytes_(bytes) {}
  ~DeviceBuffer();
  DeviceBuffer(const DeviceBuffer&) = delete;
  DeviceBuffer& operator=(const DeviceBuffer&) = delete;

  absl::Status Map(CUmemLocation location);
  CUdeviceptr address() const { return address_; }

 private:
  const Device& device_;
  const Bytes bytes_;
  CUdeviceptr address_ = 0;
  bool is_mapped_ = false;
};

DeviceBuffer::~DeviceBuffer() {
  const CudaDriver& driver = device_.driver();
  if (is_mapped_) driver.MemUnmap(address_, bytes_);
  if (address_ != 0) driver.MemAddressFree(address_, bytes_);
}

absl::Status DeviceBuffer::Map(CUmemLocation location) {
  const CudaDriver& driver = device_.driver();
  const auto check = [this](CUresult result) {
    return device_.Status(result, "memory to measure a link");
  };
  CUmemAllocationProp properties{};
  properties.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  properties.location = location;
  CUmemGenericAllocationHandle handle = 0;
  TORPOR_RETURN_IF_ERROR(check(driver.MemAddressReserve(&address_, bytes_, 0, 0, 0)));
  TORPOR_RETURN_IF_ERROR(check(driver.MemCreate(&handle, bytes_, &properties, 0)));
  const CUresult mapped = driver.MemMap(address_, bytes_, 0, handle, 0);
  driver.MemRelease(handle);
  TORPOR_RETURN_IF_ERROR(check(mapped));
  is_mapped_ = true;
  return AllowAccess(device_, address_, bytes_);
}

// Performs copies for a measurement and releases all driver objects afterwards.
class Measurement {
 public:
  Measurement(const Device& device, Bytes bytes)
      : device_(device), bytes_(bytes), target_(device, bytes), peers_(device, bytes) {}
  ~Measurement();
  Measurement(const Measurement&) = delete;
  Measurement& operator=(const Measurement&) = delete;

  // From `peer`, or from the host.
  absl::Status Prepare(std::optional<CUmemLocation> peer);
  // Returns the best rate for each size up to the size of the memory, as far as the time suffices.
  absl::StatusOr<BandwidthCurve> Run(Duration time);

 private:
  // Times `copies` copies of `bytes`, one after another, with an event behind each as in swap
  // groups.
  absl::StatusOr<Duration> Copy(Bytes bytes, std::size_t copies);
  CUresult CopyOne(Bytes offset, Bytes bytes);
  absl::Status Check(CUresult result) const { return device_.Status(result, "measuring the link"); }

  const Device& device_;
  const Bytes bytes_;
  CUstream stream_ = nullptr;
  CUevent event_ = nullptr;
  DeviceBuffer target_;
  DeviceBuffer peers_;
  void* host_ = nullptr;  // null: from a peer
};

Measurement::~Measurement() {
  const CudaDriver& driver = device_.driver();
  if (host_ != nullptr) driver.MemFreeHost(host_);
  if (event_ != nullptr) driver.EventDestroy(event_);
  if (stream_ != nullptr) driver.StreamDestroy(stream_);
}

absl::Status Measurement::Prepare(std::optional<CUmemLocation> peer) {
  const CudaDriver& driver = device_.driver();
  TORPOR_ASSIGN_OR_RETURN(stream_, device_.CreateStream());
  TORPOR_RETURN_IF_ERROR(Check(driver.EventCreate(&event_, CU_EVENT_DISABLE_TIMING)));
  TORPOR_RETURN_IF_ERROR(target_.Map(device_.location()));
  if (peer) {
    TORPOR_RETURN_IF_ERROR(peers_.Map(*peer));
  } else {
    TORPOR_RETURN_IF_ERROR(Check(driver.MemHostAlloc(&host_, bytes_, 0)));
    std::memset(host_, 1, bytes_);
  }
  return Copy(kMinGroupBytes, 1).status();  // pays one-time costs now
}

CUresult Measurement::CopyOne(Bytes offset, Bytes bytes) {
  const CudaDriver& driver = device_.driver();
  const CUdeviceptr to = target_.address() + offset;
  return host_ == nullptr
             ? driver.MemcpyDtoDAsync(to, peers_.address() + offset, bytes, stream_)
             : driver.MemcpyHtoDAsync(to, static_cast<const char*>(host_) + offset, bytes, stream_);
}

absl::StatusOr<Duration> Measurement::Copy(Bytes bytes, std::size_t copies) {
  const CudaDriver& driver = device_.driver();
  const TimePoint begin = SteadyClock().Now();
  for (std::size_t i = 0; i < copies; ++i) {
    // Different bytes each time, because a cache would serve repeated bytes.
    TORPOR_RETURN_IF_ERROR(Check(CopyOne(bytes * (i % (bytes_ / bytes)), bytes)));
    TORPOR_RETURN_IF_ERROR(Check(driver.EventRecord(event_, stream_)));
  }
  TORPOR_RETURN_IF_ERROR(Check(driver.StreamSynchronize(stream_)));
  return SteadyClock().Now() - begin;
}

constexpr Bytes kLargestCopy = 64 * kMiB;
// Kept small, because another GPU has little memory besides the pool; sufficient for a rate.
constexpr Bytes kLargestPeerCopy = 8 * kMiB;
constexpr Bytes kBytesOfSize = 16 * kMiB;  // bytes in one round of smaller copies
constexpr std::size_t kMaxCopies = 16;
constexpr int kRounds = 3;
constexpr Duration kMeasuringTime = std::chrono::milliseconds(200);
constexpr Duration kPeerMeasuringTime = std::chrono::milliseconds(100);
// Links whose rates differ by less than kAboutAsFast count as equally fast.
constexpr double kAboutAsFast = 0.2;

absl::StatusOr<BandwidthCurve> Measurement::Run(Duration time) {
  BandwidthCurve curve;
  for (Bytes bytes = kMinGroupBytes; bytes <= bytes_; bytes *= 2) curve.push_back({bytes, 0});
  const TimePoint give_up = SteadyClock().Now() + time;
  for (int round = 0; round < kRounds; ++round) {
    for (memory::BandwidthPoint& point : curve) {
      if (SteadyClock().Now() > give_up) break;
      const std::size_t copies =
          std::clamp<std::size_t>(kBytesOfSize / point.copy_bytes, 1, kMaxCopies);
      TORPOR_ASSIGN_OR_RETURN(const Duration took, Copy(point.copy_bytes, copies));
      const double rate = static_cast<double>(point.copy_bytes * copies) / ToSeconds(took);
      point.bytes_per_second = std::max(point.bytes_per_second, rate);
    }
  }
  std::erase_if(curve, [](const auto& point) { return point.bytes_per_second == 0; });
  return curve;
}

// Returns one part in `parts` of a small GPU, in whole chunks of the driver.
Bytes PartOf(const DeviceProperties& device, Bytes parts) {
  return RoundDown(device.total_bytes / parts, 2 * kMiB);
}

absl::StatusOr<BandwidthCurve> Measure(const Device& device, Bytes largest,
                                       std::optional<CUmemLocation> peer, Duration time) {
  if (largest == 0) {
    return absl::FailedPreconditionError("the GPU is too small to measure its link");
  }
  Measurement measurement(device, largest);
  TORPOR_RETURN_IF_ERROR(measurement.Prepare(peer));
  return measurement.Run(time);
}

// Waits for the lock on the file at `path`, by which executors take turns. The returned descriptor
// holds the lock.
absl::StatusOr<UniqueFd> AwaitTurn(const std::string& path) {
  UniqueFd file(open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
  if (!file) return absl::ErrnoToStatus(errno, absl::StrCat("cannot open ", path));
  const TimePoint give_up = SteadyClock().Now() + kTurnPatience;
  while (flock(file.get(), LOCK_EX | LOCK_NB) != 0) {
    if (errno != EWOULDBLOCK && errno != EINTR) {
      return absl::ErrnoToStatus(errno, absl::StrCat("cannot lock ", path));
    }
    if (SteadyClock().Now() > give_up) {
      return absl::UnavailableError("other executors measure their links for too long");
    }
    std::this_thread::sleep_for(kTurnLook);
  }
  return file;
}

std::string PathOf(const LinkIdentity& link, const std::string& folder) {
  const std::string source = link.source_uuid.empty() ? "" : "-from-" + link.source_uuid;
  return absl::StrCat(folder, "/", link.uuid, source, ".json");
}

// Reads the link's curve from the file, or calls `measure`.
absl::StatusOr<BandwidthCurve> Profile(
    const LinkIdentity& link, const std::string& folder,
    const std::function<absl::StatusOr<BandwidthCurve>()>& measure) {
  if (folder.empty()) return measure();
  const std::string path = PathOf(link, folder);
  absl::StatusOr<BandwidthCurve> known = ReadLinkProfile(SystemFiles(), path, link);
  if (known.ok()) return known;
  TORPOR_ASSIGN_OR_RETURN(const UniqueFd turn, AwaitTurn(folder + "/lock"));
  TORPOR_ASSIGN_OR_RETURN(BandwidthCurve curve, measure());
  // The lock admits one writer.
  const absl::Status kept = WriteLinkProfile(SystemFiles(), path, link, curve);
  if (!kept.ok()) {
    spdlog::warn("the link will be measured again at the next start: {}", kept.ToString());
  }
  return curve;
}

absl::StatusOr<BandwidthCurve> ProfilePeerLink(const Device& device, int peer,
                                               const std::string& folder) {
  TORPOR_ASSIGN_OR_RETURN(const DeviceProperties source, DescribeDevice(device.driver(), peer));
  CUdevice handle = 0;
  TORPOR_RETURN_IF_ERROR(
      device.Status(device.driver().DeviceGet(&handle, peer), "cuDeviceGet of a peer"));
  const DeviceProperties& target = device.properties();
  // At most a part of the quarter of a small GPU that does not belong to the pool.
  const Bytes largest = std::min({kLargestPeerCopy, PartOf(source, 16), PartOf(target, 16)});
  return Profile(LinkBetween(source, target), folder, [&] {
    return Measure(device, largest, CUmemLocation{CU_MEM_LOCATION_TYPE_DEVICE, handle},
                   kPeerMeasuringTime);
  });
}

}  // namespace

LinkIdentity LinkOf(const DeviceProperties& device) {
  const std::string_view uuid(reinterpret_cast<const char*>(device.uuid.data()),
                              device.uuid.size());
  return {FormatUuid(uuid), device.pci_bus_id, device.driver_version};
}

LinkIdentity LinkBetween(const DeviceProperties& source, const DeviceProperties& device) {
  const LinkIdentity from = LinkOf(source);
  LinkIdentity link = LinkOf(device);
  link.source_uuid = from.uuid;
  link.source_pci_bus_id = from.pci_bus_id;
  return link;
}

std::string EncodeLinkProfile(const LinkIdentity& link, const BandwidthCurve& curve) {
  Json points = Json::array();
  for (const memory::BandwidthPoint& point : curve) {
    points.push_back(Json::array({point.copy_bytes, point.bytes_per_second}));
  }
  const Json profile = {{"version", kVersion},
                        {"uuid", link.uuid},
                        {"pci_bus_id", link.pci_bus_id},
                        {"driver_version", link.driver_version},
                        {"source_uuid", link.source_uuid},
                        {"source_pci_bus_id", link.source_pci_bus_id},
                        {"curve", points}};
  return profile.dump() + "\n";
}

absl::StatusOr<BandwidthCurve> DecodeLinkProfile(std::string_view text, const LinkIdentity& link) {
  if (text.size() > kMaxFileBytes) return NoProfile("too long");
  const Json profile = Json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!profile.is_object() || profile.value("version", Json()) != kVersion) {
    return NoProfile(absl::StrCat("no object of version ", kVersion));
  }
  if (profile.value("uuid", Json()) != link.uuid ||
      profile.value("pci_bus_id", Json()) != link.pci_bus_id ||
      profile.value("driver_version", Json()) != link.driver_version ||
      profile.value("source_uuid", Json("")) != link.source_uuid ||
      profile.value("source_pci_bus_id", Json("")) != link.source_pci_bus_id) {
    return absl::FailedPreconditionError("the profile of another GPU, slot or driver");
  }
  const Json points = profile.value("curve", Json());
  if (!points.is_array() || points.empty() || points.size() > kMaxPoints) {
    return NoProfile(absl::StrCat("its curve does not have 1 to ", kMaxPoints, " points"));
  }
  BandwidthCurve curve;
  curve.reserve(points.size());
  for (const Json& pair : points) {
    TORPOR_ASSIGN_OR_RETURN(const memory::BandwidthPoint point, DecodePoint(pair));
    if (!curve.empty() && point.copy_bytes <= curve.back().copy_bytes) {
      return NoProfile("the curve's sizes do not ascend");
    }
    curve.push_back(point);
  }
  return curve;
}

absl::StatusOr<BandwidthCurve> ReadLinkProfile(Files& files, const std::string& path,
                                               const LinkIdentity& link) {
  TORPOR_ASSIGN_OR_RETURN(const std::vector<std::uint8_t> bytes, files.Read(path));
  return DecodeLinkProfile({reinterpret_cast<const char*>(bytes.data()), bytes.size()}, link);
}

absl::Status WriteLinkProfile(Files& files, const std::string& path, const LinkIdentity& link,
                              const BandwidthCurve& curve) {
  return ReplaceFile(files, path, BytesOf(EncodeLinkProfile(link, curve)), {});
}

absl::StatusOr<BandwidthCurve> MeasureLink(const Device& device) {
  return Measure(device, std::min(kLargestCopy, PartOf(device.properties(), 4)), std::nullopt,
                 kMeasuringTime);
}

absl::StatusOr<BandwidthCurve> ProfileLink(const Device& device, const std::string& folder) {
  return Profile(LinkOf(device.properties()), folder, [&] { return MeasureLink(device); });
}

absl::StatusOr<std::vector<int>> RankPeers(const Device& device, const std::vector<int>& peers,
                                           const std::string& folder) {
  std::vector<PeerRate> rates;
  rates.reserve(peers.size());
  for (const int peer : peers) {
    TORPOR_ASSIGN_OR_RETURN(const BandwidthCurve curve, ProfilePeerLink(device, peer, folder));
    rates.push_back({peer, memory::PeakRate(curve)});
  }
  return RankByRate(std::move(rates));
}

std::vector<int> RankByRate(std::vector<PeerRate> rates) {
  std::vector<int> ranked;
  ranked.reserve(rates.size());
  while (!rates.empty()) {
    const double best = std::ranges::max(rates, {}, &PeerRate::bytes_per_second).bytes_per_second;
    const auto slower =
        std::stable_partition(rates.begin(), rates.end(), [best](const PeerRate& rate) {
          return rate.bytes_per_second >= (1 - kAboutAsFast) * best;
        });
    for (auto rate = rates.begin(); rate != slower; ++rate) ranked.push_back(rate->peer);
    rates.erase(rates.begin(), slower);
  }
  return ranked;
}

}  // namespace torpor::executor
