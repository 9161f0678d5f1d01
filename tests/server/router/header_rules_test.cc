#include "server/router/header_rules.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace torpor::server {
namespace {

using ::testing::ElementsAre;

TEST(HeaderRulesTest, ListsAreSplitAtCommas) {
  EXPECT_THAT(ListItems("close, X-A ,,\tTE\t, "), ElementsAre("close", "X-A", "TE"));
  EXPECT_THAT(ListItems(""), ElementsAre());
  EXPECT_THAT(ListItems(" , "), ElementsAre());
}

TEST(HeaderRulesTest, HopByHopFieldsAreKnownInAnyCase) {
  EXPECT_TRUE(IsHopByHop("connection"));
  EXPECT_TRUE(IsHopByHop("TRANSFER-ENCODING"));
  EXPECT_FALSE(IsHopByHop("Content-Type"));
  EXPECT_FALSE(IsHopByHop("Connections"));
}

TEST(HeaderRulesTest, WhatRoutesAMessageCannotBeTakenOff) {
  EXPECT_FALSE(ConnectionMayRemove("host"));
  EXPECT_FALSE(ConnectionMayRemove("X-Request-ID"));
  EXPECT_TRUE(ConnectionMayRemove("X-Whatever"));
}

TEST(HeaderRulesTest, RequestIdsAreShortAndPlain) {
  EXPECT_TRUE(IsRequestId("01HZX-a_b.c:7"));
  EXPECT_TRUE(IsRequestId(std::string(128, 'x')));
  for (const std::string& text : {std::string(), std::string(129, 'x'), std::string("a b"),
                                  std::string("a\nb"), std::string("\"a\""), std::string("a,b")}) {
    EXPECT_FALSE(IsRequestId(text)) << text;
  }
}

}  // namespace
}  // namespace torpor::server
