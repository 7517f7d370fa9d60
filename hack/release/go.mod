module github.com/clusterhub/clusterhub/hack/release

go 1.26.0

require (
	github.com/clusterhub/clusterhub/hack/image v0.0.0
	github.com/spdx/tools-golang v0.5.7
	golang.org/x/exp v0.0.0-20261113113407-e3970619a1a4
	golang.org/x/mod v0.42.0
	golang.org/x/tools v0.52.1-0.20261106145633-d407941a339a
	sigs.k8s.io/yaml v1.6.0
)

require (
	github.com/anchore/go-struct-converter v0.1.0 // indirect
	go.yaml.in/yaml/v2 v2.4.2 // indirect
	golang.org/x/sync v0.24.0 // indirect
)

replace github.com/clusterhub/clusterhub/hack/image => ../image
