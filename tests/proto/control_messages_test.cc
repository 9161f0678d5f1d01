#include "proto/wire/control_messages.h"

#include <gtest/gtest.h>

namespace torpor::wire {
namespace {

TEST(ControlMessagesTest, RoundTrip) {
  HelloReply reply;
  reply.message = "hello";
  reply.session_id = 7;
  reply.session_key.fill(0xab);
  reply.device_base = 0x2000'0000'0000;
  reply.devices.resize(2);
  reply.devices[1].name = "GPU";
  reply.devices[1].attributes = {1, -2, 3};

  ServerMessage decoded;
  ASSERT_TRUE(DecodeMessage(EncodeMessage(ServerMessage(reply)), decoded));
  const auto* got = std::get_if<HelloReply>(&decoded);
  ASSERT_NE(got, nullptr);
  EXPECT_EQ(got->message, "hello");
  EXPECT_EQ(got->session_id, 7u);
  EXPECT_EQ(got->session_key, reply.session_key);
  EXPECT_EQ(got->device_base, reply.device_base);
  ASSERT_EQ(got->devices.size(), 2u);
  EXPECT_EQ(got->devices[1].name, "GPU");
  EXPECT_EQ(got->devices[1].attributes, reply.devices[1].attributes);
}

TEST(ControlMessagesTest, SharedMemoryTravels) {
  ClientMessage from_client;
  ASSERT_TRUE(
      DecodeMessage(EncodeMessage(ClientMessage(OpenMemory{1, 2, 3, {4, 5}})), from_client));
  EXPECT_EQ(std::get<OpenMemory>(from_client).owner_session, 2u);
  EXPECT_EQ(std::get<OpenMemory>(from_client).address, 3u);
  EXPECT_EQ(std::get<OpenMemory>(from_client).token[1], 5u);
  ServerMessage from_server;
  const OpenMemoryReply reply{1, 2, "no", 3, 4};
  ASSERT_TRUE(DecodeMessage(EncodeMessage(ServerMessage(reply)), from_server));
  EXPECT_EQ(std::get<OpenMemoryReply>(from_server).bytes, 3u);
  EXPECT_EQ(std::get<OpenMemoryReply>(from_server).device, 4);
}

TEST(ControlMessagesTest, ASessionTravelsToTheNextTorpord) {
  Resume resume;
  resume.hello.token = "secret";
  resume.session_id = 7;
  resume.session_key.fill(0xab);
  ClientMessage from_client;
  ASSERT_TRUE(DecodeMessage(EncodeMessage(ClientMessage(resume)), from_client));
  EXPECT_EQ(std::get<Resume>(from_client).hello.token, "secret");
  EXPECT_EQ(std::get<Resume>(from_client).hello.protocol_version, kProtocolVersion);
  EXPECT_EQ(std::get<Resume>(from_client).session_id, 7u);
  EXPECT_EQ(std::get<Resume>(from_client).session_key, resume.session_key);
  ServerMessage from_server;
  ASSERT_TRUE(DecodeMessage(EncodeMessage(ServerMessage(ResumeReply{0, "", 9})), from_server));
  EXPECT_EQ(std::get<ResumeReply>(from_server).saved_command, 9u);
}

TEST(ControlMessagesTest, ARefusedResumeEndsBehindItsMessage) {
  const std::vector<std::uint8_t> refused =
      EncodeMessage(ServerMessage(ResumeReply{46, "unknown", 9}));
  EXPECT_EQ(refused, EncodeMessage(ServerMessage(ResumeReply{46, "unknown", 0})));
  ServerMessage decoded;
  ASSERT_TRUE(DecodeMessage(refused, decoded));
  EXPECT_EQ(std::get<ResumeReply>(decoded).error, 46);
  EXPECT_EQ(std::get<ResumeReply>(decoded).message, "unknown");
}

// Whatever its later fields are in that version.
TEST(ControlMessagesTest, ARefusalIsUnderstoodByAnyVersion) {
  std::vector<std::uint8_t> bytes;
  Writer writer(bytes);
  writer(std::uint64_t{0});
  writer(std::int32_t{35});
  writer(std::string("another version"));
  HelloReply refusal;
  refusal.error = 35;
  refusal.message = "another version";
  EXPECT_EQ(EncodeMessage(ServerMessage(refusal)), bytes);
  ServerMessage decoded;
  ASSERT_TRUE(DecodeMessage(bytes, decoded));
  EXPECT_EQ(std::get<HelloReply>(decoded).message, "another version");
}

TEST(ControlMessagesTest, EveryTruncationIsRefused) {
  Hello hello;
  hello.token = "secret";
  hello.program = "program";
  const std::vector<std::uint8_t> bytes = EncodeMessage(ClientMessage(hello));
  for (std::size_t length = 0; length < bytes.size(); ++length) {
    ClientMessage message;
    EXPECT_FALSE(DecodeMessage(std::span(bytes).first(length), message)) << length;
  }
}

TEST(ControlMessagesTest, TrailingBytesAndUnknownTypesAreRefused) {
  std::vector<std::uint8_t> bytes = EncodeMessage(ClientMessage(LeaseAck{1}));
  bytes.resize(bytes.size() + kAlignment);
  ClientMessage message;
  EXPECT_FALSE(DecodeMessage(bytes, message));

  std::vector<std::uint8_t> unknown(kAlignment, 0xff);
  EXPECT_FALSE(DecodeMessage(unknown, message));
}

TEST(ControlMessagesTest, ALyingCountAllocatesNothing) {
  std::vector<std::uint8_t> bytes;
  Writer writer(bytes);
  writer(std::uint64_t{1} << 60);
  Reader reader(bytes);
  std::vector<DeviceDescription> devices;
  reader(devices);
  EXPECT_FALSE(reader.ok());
  EXPECT_TRUE(devices.empty());
}

}  // namespace
}  // namespace torpor::wire
