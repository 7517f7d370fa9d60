module github.com/clusterhub/clusterhub/test/fakeaws/models

go 1.26.0

require github.com/aws/aws-sdk-go v1.55.8

require github.com/jmespath/go-jmespath v0.4.0 // indirect
