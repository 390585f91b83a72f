// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.20;

import {IReporter} from "./IReporter.sol";

/// @title ReporterPanel
/// @notice The price in the middle of three reporters of different companies.
contract ReporterPanel {
    uint256 public constant MAX_AGE = 1 days;

    IReporter[3] public reporters;

    constructor(IReporter[3] memory reporters_) {
        reporters = reporters_;
    }

    /// @notice The middle of the current reports; of two, the lower one.
    function median() external view returns (uint256) {
        uint256[3] memory prices;
        uint256 count = 0;
        for (uint256 i = 0; i < 3; i++) {
            try reporters[i].latest() returns (uint256 price, uint256 reportedAt) {
                if (block.timestamp <= reportedAt + MAX_AGE) {
                    prices[count++] = price;
                }
            } catch {
                continue;
            }
        }
        require(count >= 2, "too few reports");
        if (count == 2) {
            return prices[0] < prices[1] ? prices[0] : prices[1];
        }
        return _middle(prices[0], prices[1], prices[2]);
    }

    function _middle(uint256 a, uint256 b, uint256 c) private pure returns (uint256) {
        if ((a <= b && b <= c) || (c <= b && b <= a)) {
            return b;
        }
        if ((b <= a && a <= c) || (c <= a && a <= b)) {
            return a;
        }
        return c;
    }
}
