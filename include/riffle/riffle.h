// Start here: all that most programs need, and which header is for what.
//
//   auto engine = riffle::launched_engine();                      // make_engine.h
//   riffle::Session session(*engine, riffle::StrategyTable::builtin().make("mg-wfbp"), model);
//
// To train: session.h runs a strategy on your memory, step by step; make_engine.h makes what moves
// its bytes; torch.h does all of it for libtorch models (riffle::torch, not included here).
// To plan: cluster.h and trace.h say what you have, strategy.h names the ways to synchronize,
// plan.h ranks them, simulate.h predicts a step, verify.h proves what a program does, cost.h prices
// a collective; zoo.h and import.h have traces, load.h reads them from files. To look inside:
// program.h is what a strategy makes of a step, world.h and bucket.h what it is made for,
// timeline.h what happened. Below: engine.h moves messages, collective.h adds them up, store.h and
// launch_environment.h are how ranks meet. units.h, random.h, error.h and comm_error.h are for
// everybody.
#pragma once

#include "riffle/cluster.h"
#include "riffle/cost.h"
#include "riffle/error.h"
#include "riffle/load.h"
#include "riffle/make_engine.h"
#include "riffle/plan.h"
#include "riffle/session.h"
#include "riffle/simulate.h"
#include "riffle/strategy.h"
#include "riffle/trace.h"
#include "riffle/verify.h"
