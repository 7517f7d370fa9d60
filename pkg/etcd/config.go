// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package etcd

import (
	"net"
	"net/url"
	"path/filepath"
	"time"

	"go.etcd.io/etcd/client/pkg/v3/logutil"
	"go.etcd.io/etcd/client/pkg/v3/transport"
	"go.etcd.io/etcd/server/v3/embed"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"google.golang.org/grpc"
)

const (
	// memberName and memberPeerURL identify the one member, in this run and in every later one. Nothing listens on the peer URL and nothing dials it:
	// a cluster of one has no peers, so the member needs no peer port. Since the URL never changes, nothing must be updated when the client port
	// does.
	memberName    = "hub-apiserver"
	memberPeerURL = "https://127.0.0.1:2380"

	// watchProgressInterval is the interval at which idle watches receive the current revision; the API server's consistent reads from its cache wait for that.
	watchProgressInterval = 5 * time.Second
	// catchUpEntries is the number of raft entries that stay in memory for a slow follower. This cluster has no followers.
	catchUpEntries = 100
	// startDefragMiB is the number of MiB that a defragmentation must free for etcd to run one at startup.
	startDefragMiB = 64
)

// embedConfig returns etcd's configuration for opts, serving gRPC on grpcAddress ("127.0.0.1:port"). onGRPC is called with the gRPC server once it
// exists.
func embedConfig(opts Options, p pki, grpcAddress string, onGRPC func(*grpc.Server)) (*embed.Config, error) {
	logger, err := newLogger()
	if err != nil {
		return nil, err
	}
	peerURL, err := url.Parse(memberPeerURL)
	if err != nil {
		return nil, err
	}
	clientURL := url.URL{Scheme: "https", Host: grpcAddress}

	cfg := embed.NewConfig()
	cfg.Name = memberName
	cfg.Dir = filepath.Join(opts.DataDir, "etcd")
	cfg.ZapLoggerBuilder = embed.NewZapLoggerBuilder(logger)

	cfg.ListenPeerUrls = nil
	cfg.AdvertisePeerUrls = []url.URL{*peerURL}
	cfg.InitialCluster = memberName + "=" + memberPeerURL

	// A port of its own for etcd's HTTP handlers (/health, /metrics) makes etcd serve gRPC with gRPC's HTTP/2 stack. On a shared port it would use
	// net/http, which starves watches behind large responses.
	cfg.ListenClientUrls = []url.URL{clientURL}
	cfg.ListenClientHttpUrls = []url.URL{{Scheme: "https", Host: "127.0.0.1:0"}}
	cfg.AdvertiseClientUrls = []url.URL{clientURL}
	cfg.ServiceRegister = onGRPC
	cfg.EnableGRPCGateway = false // no client uses JSON
	cfg.TlsMinVersion = "TLS1.3"
	cfg.ClientTLSInfo = transport.TLSInfo{
		CertFile:       p.serverCertFile,
		KeyFile:        p.serverKey,
		TrustedCAFile:  p.caFile,
		ClientCertAuth: true,
	}

	// etcd's own users and passwords are off; its default kind of token logs a warning about itself at each start.
	cfg.AuthToken = ""

	cfg.QuotaBackendBytes = opts.QuotaBackendBytes
	cfg.UnsafeNoFsync = opts.UnsafeNoFsync
	cfg.WatchProgressNotifyInterval = watchProgressInterval
	cfg.SnapshotCatchUpEntries = catchUpEntries
	cfg.BootstrapDefragThresholdMegabytes = startDefragMiB
	return cfg, nil
}

// newLogger returns a logger for warnings and errors, to stderr. A fatal log message of etcd becomes a panic, which start can convert to an error.
func newLogger() (*zap.Logger, error) {
	cfg := logutil.DefaultZapLoggerConfig
	cfg.Level = zap.NewAtomicLevelAt(zap.WarnLevel)
	cfg.Encoding = "console"
	cfg.OutputPaths = []string{"stderr"}
	cfg.ErrorOutputPaths = []string{"stderr"}
	cfg.DisableStacktrace = true
	logger, err := cfg.Build(zap.WithFatalHook(zapcore.WriteThenPanic), zap.WrapCore(func(core zapcore.Core) zapcore.Core {
		return quietCore{core}
	}))
	if err != nil {
		return nil, err
	}
	return logger.Named("embedded-etcd"), nil
}

// quietCore drops the line that etcd logs for each listener that ends, even if it is stopped as intended. embed.Etcd.Err returns the same error,
// which Start and watchErrors handle.
type quietCore struct{ zapcore.Core }

func (c quietCore) With(fields []zapcore.Field) zapcore.Core {
	return quietCore{c.Core.With(fields)}
}

func (c quietCore) Check(entry zapcore.Entry, checked *zapcore.CheckedEntry) *zapcore.CheckedEntry {
	if entry.Message == "setting up serving from embedded etcd failed." {
		return checked
	}
	return c.Core.Check(entry, checked)
}

// freeAddress returns "127.0.0.1:port" with a port that the kernel chose and that was free a moment ago.
func freeAddress() (string, error) {
	listener, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	address := listener.Addr().String()
	return address, listener.Close()
}
