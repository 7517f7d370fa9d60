module github.com/clusterhub/clusterhub/hack/release

go 1.26.0

require (
	github.com/clusterhub/clusterhub/hack/image v0.0.0
	github.com/spdx/tools-golang v0.5.7
	golang.org/x/mod v0.39.0
	sigs.k8s.io/yaml v1.6.0
)

require (
	github.com/anchore/go-struct-converter v0.1.0 // indirect
	go.yaml.in/yaml/v2 v2.4.2 // indirect
)

replace github.com/clusterhub/clusterhub/hack/image => ../image
