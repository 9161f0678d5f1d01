#include "server/links/descriptor_server.h"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <memory>
#include <vector>

#include "tests/server/links/test_server.h"

namespace torpor::server {
namespace {

constexpr SessionFiles::Sizes kSizes = {.image = kGiB, .host_arena = 2 * kGiB, .window = kMiB};
constexpr SessionId kSession{5};

class DescriptorServerTest : public testing::Test {
 protected:
  DescriptorServerTest() {
    EXPECT_TRUE(repository_.Create(kSession, key_, kSizes).ok());
    auto server = DescriptorServer::Start(folder_.path("socket"), 0660, repository_,
                                          [this](pid_t pid) { return pid == executor_; });
    EXPECT_TRUE(server.ok()) << server.status();
    server_ = *std::move(server);
  }

  UniqueFd Dial() {
    UniqueFd socket(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
    sockaddr_un address = {};
    address.sun_family = AF_UNIX;
    folder_.path("socket").copy(address.sun_path, sizeof address.sun_path - 1);
    EXPECT_EQ(connect(socket.get(), reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
    return socket;
  }

  struct Answer {
    wire::DescriptorReply reply;
    UniqueFd descriptor;
  };
  Answer Ask(const UniqueFd& socket, const wire::DescriptorRequest& request) {
    EXPECT_EQ(send(socket.get(), &request, sizeof request, 0), ssize_t{sizeof request});
    Answer answer;
    iovec data = {&answer.reply, sizeof answer.reply};
    alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(int))> control{};
    msghdr message = {};
    message.msg_iov = &data;
    message.msg_iovlen = 1;
    message.msg_control = control.data();
    message.msg_controllen = control.size();
    EXPECT_EQ(recvmsg(socket.get(), &message, MSG_CMSG_CLOEXEC), ssize_t{sizeof answer.reply});
    if (const cmsghdr* header = CMSG_FIRSTHDR(&message)) {
      int fd = -1;
      std::memcpy(&fd, CMSG_DATA(header), sizeof fd);
      answer.descriptor.Reset(fd);
    }
    return answer;
  }

  TemporaryFolder folder_;
  Repository repository_;
  const SessionKey key_ = NewSessionKey();
  std::atomic<pid_t> executor_{-1};
  std::unique_ptr<DescriptorServer> server_;
};

TEST_F(DescriptorServerTest, HandsOutTheFiles) {
  const UniqueFd socket = Dial();
  const Answer window = Ask(socket, {kSession.value, key_, wire::SharedMemory::kWindow});
  EXPECT_EQ(window.reply.error, 0);
  EXPECT_EQ(window.reply.bytes, kMiB);
  struct stat status = {};
  ASSERT_EQ(fstat(window.descriptor.get(), &status), 0);
  EXPECT_EQ(static_cast<Bytes>(status.st_size), kMiB);
  const Answer arena = Ask(socket, {kSession.value, key_, wire::SharedMemory::kHostArena});
  EXPECT_EQ(arena.reply.bytes, 2 * kGiB);
  EXPECT_TRUE(arena.descriptor);
}

TEST_F(DescriptorServerTest, ImagesAndTheirStatesAreForExecutors) {
  for (const auto what : {wire::SharedMemory::kImage, wire::SharedMemory::kBlockStates,
                          wire::SharedMemory::kCheckpoint}) {
    const wire::DescriptorRequest request = {kSession.value, key_, what};
    executor_ = -1;
    const Answer refused = Ask(Dial(), request);
    EXPECT_EQ(refused.reply.error, EACCES);
    EXPECT_FALSE(refused.descriptor);
    executor_ = getpid();
    const Answer given = Ask(Dial(), request);
    EXPECT_EQ(given.reply.error, 0);
    EXPECT_TRUE(given.descriptor);
  }
}

TEST_F(DescriptorServerTest, KeysAreChecked) {
  const UniqueFd socket = Dial();
  EXPECT_EQ(Ask(socket, {kSession.value, NewSessionKey()}).reply.error, EACCES);
  EXPECT_EQ(Ask(socket, {kSession.value + 1, key_}).reply.error, ENOENT);
  EXPECT_EQ(Ask(socket, {kSession.value, key_}).reply.error, 0);
}

TEST_F(DescriptorServerTest, WhoSendsSomethingElseIsCutOff) {
  const UniqueFd honest = Dial();
  const wire::DescriptorRequest unknown = {kSession.value, key_, wire::SharedMemory{99}};
  for (const std::string& bytes :
       {std::string("x"), std::string(1000, 'x'),
        std::string(reinterpret_cast<const char*>(&unknown), sizeof unknown)}) {
    const UniqueFd socket = Dial();
    ASSERT_EQ(send(socket.get(), bytes.data(), bytes.size(), 0),
              static_cast<ssize_t>(bytes.size()));
    char end = 0;
    EXPECT_EQ(recv(socket.get(), &end, 1, 0), 0);
  }
  EXPECT_EQ(Ask(honest, {kSession.value, key_}).reply.error, 0);
}

TEST_F(DescriptorServerTest, WhoStaysIdleMakesRoomForOthers) {
  executor_ = getpid();
  const UniqueFd executor = Dial();
  EXPECT_EQ(Ask(executor, {kSession.value, key_}).reply.error, 0);
  executor_ = -1;
  std::vector<UniqueFd> idle;
  for (int i = 0; i < 300; ++i) {
    idle.push_back(Dial());
    EXPECT_EQ(Ask(idle.back(), {kSession.value, key_}).reply.error, 0);
  }
  char end = 0;
  EXPECT_EQ(recv(idle.front().get(), &end, 1, 0), 0) << "the oldest is cut off";
  EXPECT_EQ(Ask(executor, {kSession.value, key_}).reply.error, 0) << "an executor never is";
}

TEST_F(DescriptorServerTest, LongPathsAreRefusedClearly) {
  const auto server = DescriptorServer::Start(std::string(200, 'x'), 0660, repository_,
                                              [](pid_t) { return false; });
  EXPECT_TRUE(absl::IsInvalidArgument(server.status()));
}

}  // namespace
}  // namespace torpor::server
